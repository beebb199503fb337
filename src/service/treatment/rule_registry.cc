// SPDX-License-Identifier: Apache-2.0
#include "service/treatment/rule_registry.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "service/treatment/buffered_directories.h"

namespace cairn::node {
namespace {

// `{n}` stands for one or more digits, which an extended glob can say (fnmatch(3), FNM_EXTMATCH).
std::string as_glob(const std::string& pattern, bool* has_numbers) {
  constexpr std::string_view kPlaceholder = "{n}";
  std::string glob = pattern;
  for (std::size_t at = glob.find(kPlaceholder); at != std::string::npos;
       at = glob.find(kPlaceholder)) {
    glob.replace(at, kPlaceholder.size(), "+([0-9])");
    *has_numbers = true;
  }
  return glob;
}

std::string place_of(const FileRule& rule) {
  const std::string name = rule.name.empty() ? "rule for " + rule.pattern : "rule " + rule.name;
  return rule.source.empty() ? name : rule.source + ": " + name;
}

std::string no_more_statements() {
  return "a node takes " + std::to_string(PartTable::kStatementsMax) +
         " different statements about parts of files, and has had them all; end it "
         "(cairn down) and start it again";
}

template <typename Value>
void keep_if_unset(std::optional<Value>* value, const std::optional<Value>& earlier) {
  if (!*value) *value = earlier;
}

FileRule merged(const FileRule& rule, const FileRule& earlier) {
  FileRule result = rule;
  keep_if_unset(&result.mode, earlier.mode);
  keep_if_unset(&result.trigger, earlier.trigger);
  keep_if_unset(&result.durability, earlier.durability);
  keep_if_unset(&result.tier, earlier.tier);
  keep_if_unset(&result.policy, earlier.policy);
  keep_if_unset(&result.pinned, earlier.pinned);
  keep_if_unset(&result.priority, earlier.priority);
  keep_if_unset(&result.prefetch, earlier.prefetch);
  keep_if_unset(&result.reserve, earlier.reserve);
  return result;
}

bool same_part(const FileRule& left, const FileRule& right) {
  return left.pattern == right.pattern && left.offset_begin == right.offset_begin &&
         left.offset_end == right.offset_end;
}

}  // namespace

RuleRegistry::RuleRegistry(const NodeMemory& memory, const NodeConfig& config,
                           AccountRegistry& accounts, PolicyNumber number_of_policy)
    : memory_(memory),
      config_(config),
      accounts_(accounts),
      number_of_policy_(std::move(number_of_policy)) {
  CAIRN_CHECK(number_of_policy_ != nullptr);
}

Result<TierId> RuleRegistry::tier_named(const std::string& name) const {
  std::string known;
  for (unsigned tier = 0; tier < memory_.tier_count(); ++tier) {
    if (memory_.pool(static_cast<TierId>(tier)).slab_count() == 0) continue;
    const std::string candidate = tier_name(config_, tier);
    if (candidate == name) return static_cast<TierId>(tier);
    known += (known.empty() ? "" : ", ") + candidate;
  }
  return Status(StatusCode::kNotFound,
                "no tier is named \"" + name + "\"; there are " + (known.empty() ? "none" : known));
}

Result<ObjectHandling> RuleRegistry::handling_of(const FileRule& rule,
                                                 ObjectHandling handling) const {
  if (rule.mode) handling.mode = *rule.mode;
  if (rule.trigger) handling.trigger = *rule.trigger;
  if (rule.durability == Durability::kNode && config_.durable_log_bytes == 0) {
    return Status(StatusCode::kNotFound,
                  "durability node needs a durable tier, and the node has none; start it with "
                  "--tier DIR:SIZE:durable");
  }
  if (rule.durability) handling.durability = *rule.durability;
  if (rule.pinned) handling.pinned = *rule.pinned;
  if (rule.priority) {
    handling.priority =
        static_cast<std::uint8_t>(std::min<unsigned>(*rule.priority, ObjectHandling::kPriorityMax));
  }
  if (rule.prefetch) handling.prefetch = *rule.prefetch;
  if (rule.tier) {
    auto tier = tier_named(*rule.tier);
    if (!tier) return tier.status();
    handling.home = tier.value();
  }
  if (rule.policy) {
    auto number = number_of_policy_(*rule.policy);
    if (!number) return number.status();
    handling.policy = number.value();
  }
  return handling;
}

// What a rule says of its part becomes statements about blocks; a block belongs to a part that has
// one byte of it.
Status RuleRegistry::add_part(const FileRule& rule, const ObjectHandling& handling,
                              RuleRecord* record) const {
  const bool is_bypass = rule.mode == BufferingMode::kBypass;
  for (const auto& [is_set, field] : {std::pair{rule.mode && !is_bypass, "this mode"},
                                      std::pair{rule.trigger.has_value(), "a trigger"},
                                      std::pair{rule.durability.has_value(), "durability"},
                                      std::pair{rule.policy.has_value(), "a policy"},
                                      std::pair{rule.prefetch.has_value(), "prefetch"},
                                      std::pair{rule.reserve.has_value(), "a reservation"},
                                      std::pair{rule.keep.has_value(), "keep"}}) {
    if (!is_set) continue;
    return Status(StatusCode::kInvalid,
                  std::string(field) +
                      " holds for a whole file, but the rule speaks of a part of "
                      "it (offset); give it a rule without offset");
  }
  if (rule.offset_begin >= rule.offset_end)
    return Status(StatusCode::kInvalid, "the part is empty; offset begin is to be below its end");
  constexpr std::uint64_t kLastBlock = UINT32_MAX;
  PartStatement part;
  part.first_block =
      static_cast<std::uint32_t>(std::min(rule.offset_begin / kBlockBytes, kLastBlock));
  part.last_block =
      static_cast<std::uint32_t>(std::min((rule.offset_end - 1) / kBlockBytes, kLastBlock));
  CAIRN_CHECK(part.first_block <= part.last_block);
  bool is_full = false;
  const std::lock_guard lock(parts_mutex_);
  const auto add = [&](bool is_set, PartProperty property, unsigned value, std::uint8_t* number) {
    if (!is_set) return;
    part.property = property;
    part.value = static_cast<std::uint8_t>(value);
    *number = memory_.rules().parts().add(part);
    is_full = is_full || *number == 0;
  };
  add(handling.home.has_value(), PartProperty::kHome, handling.home ? raw(*handling.home) : 0,
      &record->part_home);
  add(rule.pinned.has_value(), PartProperty::kPinned, handling.pinned ? 1 : 0,
      &record->part_pinned);
  add(rule.priority.has_value(), PartProperty::kPriority, handling.priority,
      &record->part_priority);
  add(is_bypass, PartProperty::kNeverBuffer, 1, &record->part_never_buffered);
  if (!is_full) return Status::ok();
  return Status(StatusCode::kExhausted, no_more_statements());
}

Result<RuleRegistry::Entry> RuleRegistry::compile(const FileRule& rule, std::uint32_t run) const {
  Entry entry;
  entry.rule = rule;
  RuleRecord& record = entry.record;
  const auto handling = handling_of(rule, ObjectHandling());
  if (!handling)
    return Status(handling.status().code(), place_of(rule) + ": " + handling.status().message());
  record.handling = handling->bits();
  if (rule.speaks_of_part()) {
    const Status added = add_part(rule, handling.value(), &record);
    if (!added.is_ok()) return Status(added.code(), place_of(rule) + ": " + added.message());
  }
  bool has_numbers = false;
  const std::string glob = as_glob(rule.pattern, &has_numbers);
  if (glob.size() >= RuleRecord::kPatternBytes) {
    return Status(StatusCode::kInvalid, place_of(rule) + ": the pattern is longer than " +
                                            std::to_string(FileRule::kPatternBytesMax) + " bytes");
  }
  static_assert(FileRule::kPatternBytesMax < RuleRecord::kPatternBytes);
  std::memcpy(record.pattern, glob.c_str(), glob.size() + 1);
  record.has_numbers = has_numbers ? 1 : 0;
  record.size_min = rule.size_min;
  record.size_max = rule.size_max;
  record.run = run;
  record.access = rule.access;
  const auto decides = [&record](bool is_set, RuleRecord::Property property) {
    if (is_set) record.properties = static_cast<std::uint16_t>(record.properties | property);
  };
  decides(rule.mode.has_value(), RuleRecord::kMode);
  decides(rule.trigger.has_value(), RuleRecord::kTrigger);
  decides(rule.durability.has_value(), RuleRecord::kDurability);
  decides(rule.policy.has_value(), RuleRecord::kPolicy);
  decides(rule.tier.has_value(), RuleRecord::kHome);
  decides(rule.pinned.has_value(), RuleRecord::kPinned);
  decides(rule.priority.has_value(), RuleRecord::kPriority);
  decides(rule.prefetch.has_value(), RuleRecord::kPrefetch);
  decides(rule.reserve.has_value(), RuleRecord::kAccount);
  entry.key = RuleKey{run, 0, rule.pattern};
  return entry;
}

// Reserves what the rule says; nothing, and what was reserved by it ends, when that is 0.
Status RuleRegistry::open_account(Entry* entry) const {
  const std::optional<Reservation>& reserve = entry->rule.reserve;
  if (!reserve || reserve->bytes == 0) {
    accounts_.close_for_rule(entry->key);
    return Status::ok();
  }
  const std::lock_guard lock(parts_mutex_);
  const auto account = accounts_.open_for_rule(entry->key, *reserve);
  if (!account) {
    return Status(account.status().code(),
                  place_of(entry->rule) + ": " + account.status().message());
  }
  PartStatement all_blocks;
  all_blocks.property = PartProperty::kAccount;
  CAIRN_CHECK(raw(*account) < kAccountsMax);
  all_blocks.value = static_cast<std::uint8_t>(raw(*account));
  entry->record.account_statement = memory_.rules().parts().add(all_blocks);
  if (entry->record.account_statement != 0) return Status::ok();
  // An account that the rule has had already has its statement too, so this one is new.
  accounts_.close_for_rule(entry->key);
  return Status(StatusCode::kExhausted, place_of(entry->rule) + ": " + no_more_statements());
}

void RuleRegistry::close_accounts(const std::vector<Entry>& entries) const {
  for (const Entry& entry : entries) accounts_.close_for_rule(entry.key);
}

Result<std::vector<RuleRegistry::Entry>> RuleRegistry::compile_all(
    const std::vector<FileRule>& rules, std::uint32_t run) const {
  std::vector<Entry> entries;
  for (const FileRule& rule : rules) {
    auto entry = compile(rule, run);
    if (!entry) return entry.status();
    entries.push_back(std::move(entry.value()));
  }
  CAIRN_RETURN_IF_ERROR(check_parts(entries));
  for (std::size_t at = 0; at < entries.size(); ++at) {
    entries[at].key.position = static_cast<std::uint32_t>(at + 1);
    if (const Status opened = open_account(&entries[at]); !opened) {
      close_accounts(entries);
      return opened;
    }
  }
  return entries;
}

// A file's parts have to fit into the set of statements that goes with it.
Status RuleRegistry::check_parts(const std::vector<Entry>& entries) {
  std::map<std::string, unsigned> statements;
  for (const Entry& entry : entries) {
    const RuleRecord& record = entry.record;
    unsigned& count = statements[entry.rule.pattern];
    for (const std::uint8_t number :
         {record.part_home, record.part_pinned, record.part_priority, record.part_never_buffered})
      count += number != 0 ? 1 : 0;
    count += entry.rule.reserve ? 1 : 0;
    if (count <= PartSet::kStatementsMax) continue;
    return Status(StatusCode::kInvalid, place_of(entry.rule) + ": the rules for parts of \"" +
                                            entry.rule.pattern + "\" set more than " +
                                            std::to_string(PartSet::kStatementsMax) +
                                            " properties; join neighbouring parts");
  }
  return Status::ok();
}

std::size_t RuleRegistry::size() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = live_.size() + schema_.size();
  for (const auto& [run, entries] : runs_) count += entries.size();
  return count;
}

Status RuleRegistry::room_for(std::size_t more) const {
  if (size() + more <= RuleTable::kRulesMax) return Status::ok();
  return Status(StatusCode::kExhausted, "a node takes " + std::to_string(RuleTable::kRulesMax) +
                                            " rules, and these would be " +
                                            std::to_string(size() + more));
}

Status RuleRegistry::load(const std::vector<FileRule>& rules) {
  CAIRN_RETURN_IF_ERROR(room_for(rules.size()));
  auto entries = compile_all(rules, 0);
  if (!entries) return entries.status();
  const std::lock_guard lock(mutex_);
  schema_ = std::move(entries.value());
  publish();
  return Status::ok();
}

Status RuleRegistry::begin_run(std::uint32_t run, const std::vector<FileRule>& rules) {
  if (rules.empty()) return Status::ok();
  CAIRN_RETURN_IF_ERROR(room_for(rules.size()));
  auto entries = compile_all(rules, run);
  if (!entries) return entries.status();
  const std::lock_guard lock(mutex_);
  runs_[run] = std::move(entries.value());
  publish();
  return Status::ok();
}

void RuleRegistry::end_run(std::uint32_t run) {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(run);
  if (found == runs_.end()) return;
  const std::vector<Entry> ended = std::move(found->second);
  runs_.erase(found);
  // First, so that nobody opens a file under a rule whose account is closed.
  publish();
  close_accounts(ended);
}

Status RuleRegistry::set(const FileRule& rule) {
  CAIRN_RETURN_IF_ERROR(room_for(1));
  FileRule whole = rule;
  {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : live_) {
      if (same_part(entry.rule, rule)) whole = merged(rule, entry.rule);
    }
  }
  auto entry = compile(whole, 0);
  if (!entry) return entry.status();
  if (!whole.speaks_of_part()) CAIRN_RETURN_IF_ERROR(open_account(&entry.value()));
  const std::lock_guard lock(mutex_);
  std::erase_if(live_, [&](const Entry& old) { return same_part(old.rule, rule); });
  live_.insert(live_.begin(), std::move(entry.value()));
  publish();
  return Status::ok();
}

std::vector<FileRule> RuleRegistry::lifetimes() const {
  std::vector<FileRule> rules;
  const std::lock_guard lock(mutex_);
  for (const Entry* entry : in_order()) {
    if (entry->rule.keep) rules.push_back(entry->rule);
  }
  return rules;
}

// Requires: the mutex.
std::vector<const RuleRegistry::Entry*> RuleRegistry::in_order() const {
  std::vector<const Entry*> entries;
  for (const Entry& entry : live_) entries.push_back(&entry);
  for (const auto& [run, of_run] : runs_) {
    for (const Entry& entry : of_run) entries.push_back(&entry);
  }
  for (const Entry& entry : schema_) entries.push_back(&entry);
  return entries;
}

// Requires: the mutex.
void RuleRegistry::publish() const {
  std::vector<RuleRecord> records;
  for (const Entry* entry : in_order()) records.push_back(entry->record);
  memory_.rules().publish(records);
}

std::vector<RuleRegistry::Decision> RuleRegistry::decisions(
    const std::string& path, std::uint64_t size,
    const std::vector<std::string>& directories) const {
  RuleQuestion question;
  question.path = path.c_str();
  question.size = size;
  question.below = part_below(path, directories);
  std::vector<Decision> decisions;
  std::uint16_t open = RuleRecord::kAllProperties;
  const std::lock_guard lock(mutex_);
  for (const Entry* entry : in_order()) {
    RuleRecord record = entry->record;
    record.access = RuleAccess::kAny;
    question.run = record.run;
    if (!rule_matches(record, question)) continue;
    for (unsigned bit = 0; bit < 16; ++bit) {
      const auto property = static_cast<RuleRecord::Property>(1U << bit);
      if ((record.properties & open & property) == 0) continue;
      // A rule for a part leaves the rest of the file open.
      if (!record.speaks_of_part()) open = static_cast<std::uint16_t>(open & ~property);
      const auto place = std::upper_bound(
          decisions.begin(), decisions.end(), property,
          [](RuleRecord::Property left, const Decision& right) { return left < right.property; });
      decisions.insert(place, Decision{property, entry->rule});
    }
  }
  return decisions;
}

}  // namespace cairn::node
