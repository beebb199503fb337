// SPDX-License-Identifier: Apache-2.0
#include "cli/configuration.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

#include "base/option_table.h"
#include "base/size_text.h"
#include "base/state_directory.h"
#include "cli/config_file.h"
#include "cli/failure.h"
#include "cli/option_value.h"
#include "cli/paths.h"
#include "cli/run_directory.h"
#include "cli/tier_settings.h"
#include "policy/rules/rule_conflicts.h"
#include "policy/rules/rule_reader.h"
#include "policy/rules/schema_file.h"
#include "service/learning/declared_orders.h"

namespace cairn::cli {
namespace {

// The option's choices are the names of the experts (policy/replacement/experts.h).
std::optional<std::string> expert_named(std::string_view text) {
  const auto choices = option_choices(option_description(OptionId::kReplacementExpert));
  if (std::find(choices.begin(), choices.end(), text) == choices.end()) return std::nullopt;
  return std::string(text);
}

std::optional<bool> admits_by_value_named(std::string_view text) {
  if (text == "value") return true;
  if (text == "always") return false;
  return std::nullopt;
}

constexpr const char* kCommandLine = "command line";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (start <= text.size()) {
    const size_t end = std::min(text.find(separator, start), text.size());
    if (end > start) parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

// Resolves one configuration. The public entry points are resolve_*; everything else is one step of
// it.
class Resolver {
 public:
  Resolver(const CommandLineSettings& command_line, ConfigurationScope scope,
           const MachineRoots& roots)
      : command_line_(command_line),
        scope_(scope),
        roots_(roots),
        tiers_(roots, [this](const std::string& source, const std::string& text) {
          problem(source, text);
        }) {}

  Configuration resolve() {
    read_file();
    const auto of_file = static_cast<ptrdiff_t>(settings_.size());
    read_environment();
    read_command_line();
    // Another schema than that of the file replaces the rules that the file brought along.
    if (std::any_of(settings_.begin() + of_file, settings_.end(),
                    [](const Setting& setting) { return setting.id == OptionId::kSchema; })) {
      resolved_rules_.reset();
    }
    for (const Setting& setting : settings_) apply(setting);
    if (scope_ == ConfigurationScope::kNode) {
      resolve_name();
      check_buffer_directories();
      result_.node.tiers = tiers_.resolve(result_.node.buffer_directories);
      if (!tiers_.source().empty()) sources_[OptionId::kTiers] = tiers_.source();
      resolve_ram();
      check_directories(scratch_, &result_.node.scratch_directories);
      resolve_swap();
      resolve_remembered();
      resolve_schema();
      check_rules_of_node();
      check_contradictions();
    } else {
      check_buffer_directories();
      check_directories(scratch_, &result_.run_scratch);
      resolve_schema();
      take_run_settings();
    }
    if (!problems_.empty()) fail();
    list_resolved();
    return std::move(result_);
  }

 private:
  bool concerns(OptionId id) const {
    return scope_ == ConfigurationScope::kNode || option_description(id).hot_changeable;
  }

  void read_file() {
    std::string path = command_line_.config_file;
    if (path.empty() && !command_line_.ignore_environment) {
      const char* from_environment = std::getenv("CAIRN_CONFIG");
      if (from_environment != nullptr) path = from_environment;
    }
    if (path.empty()) return;
    ConfigFile file = load_config_file(path);
    problems_.insert(problems_.end(), file.problems.begin(), file.problems.end());
    settings_.insert(settings_.end(), file.settings.begin(), file.settings.end());
    if (file.has_resolved_rules) resolved_rules_ = std::move(file.resolved_rules);
  }

  void read_environment() {
    if (command_line_.ignore_environment) return;
    for (const OptionDescription& option : option_table()) {
      const char* text = std::getenv(std::string(option.environment).c_str());
      if (text == nullptr) continue;
      const std::string source = fmt::format("environment {}", option.environment);
      Setting setting{option.id, {}, source};
      std::vector<std::string> items = {text};
      if (option.type == OptionType::kTierList) items = split(text, ',');
      if (option.type == OptionType::kDirectoryList || option.type == OptionType::kPatternList) {
        items = split(text, ':');
      }
      for (std::string& item : items) setting.items.push_back({std::move(item), "", source});
      settings_.push_back(std::move(setting));
    }
  }

  void read_command_line() {
    const auto add = [this](OptionId id, const std::vector<std::string>& items) {
      Setting setting{id, {}, kCommandLine};
      for (const std::string& item : items) {
        // An empty list of flags means "not given", an empty text is a mistake worth a message.
        setting.items.push_back(
            {item, "", fmt::format("{} {}", option_description(id).flag, item)});
      }
      if (!items.empty()) settings_.push_back(std::move(setting));
    };
    const auto add_text = [&add](OptionId id, const std::string& text) {
      if (!text.empty()) add(id, {text});
    };
    add_text(OptionId::kNodeName, command_line_.name);
    add_text(OptionId::kRamCapacity, command_line_.ram);
    add_text(OptionId::kRamHugePages, command_line_.huge_pages);
    add(OptionId::kTiers, command_line_.tiers);
    add(OptionId::kBufferDirectories, command_line_.buffer);
    add(OptionId::kBufferExclude, command_line_.exclude);
    add(OptionId::kBufferScratch, command_line_.scratch);
    add_text(OptionId::kBufferSwap, command_line_.swap);
    add_text(OptionId::kSchema, command_line_.schema);
    add_text(OptionId::kBufferMode, command_line_.mode);
    add_text(OptionId::kFlushTrigger, command_line_.trigger);
    add_text(OptionId::kPlacementPolicy, command_line_.policy);
    if (command_line_.no_report) add(OptionId::kReport, {"off"});
  }

  void problem(const std::string& source, const std::string& text) {
    problems_.push_back(source + ": " + text);
  }

  void apply(const Setting& setting) {
    if (!concerns(setting.id)) return;
    sources_[setting.id] = setting.source;
    switch (setting.id) {
      case OptionId::kNodeName:
        name_ = setting;
        break;
      case OptionId::kRamCapacity:
        apply_ram(setting);
        break;
      case OptionId::kRamHugePages:
        apply_huge_pages(setting);
        break;
      case OptionId::kTiers:
        tiers_.apply(setting);
        break;
      case OptionId::kBufferDirectories:
        buffer_ = setting;
        break;
      case OptionId::kBufferExclude:
        apply_exclude(setting);
        break;
      case OptionId::kBufferScratch:
        scratch_ = setting;
        break;
      case OptionId::kBufferSwap:
        swap_ = setting.items.front().text == "auto" ? std::nullopt : number(setting);
        break;
      case OptionId::kReport:
        apply_switch(setting, &result_.report);
        break;
      case OptionId::kSchema:
        schema_ = setting;
        break;
      case OptionId::kBalanceReads:
        apply_switch(setting, &result_.node.balances_reads);
        break;
      case OptionId::kPrefetchByHeat:
        apply_switch(setting, &result_.node.prefetches_by_heat);
        break;
      case OptionId::kPrefetchOrders:
        apply_orders(setting);
        break;
      case OptionId::kPrefetchRemember:
        remember_ = setting;
        break;
      case OptionId::kPrefetchPlugin:
        apply_predictor(setting);
        break;
      case OptionId::kBufferMode:
        apply_choice(setting, buffering_mode_named, &result_.node.mode);
        break;
      case OptionId::kFlushTrigger:
        apply_choice(setting, flush_trigger_named, &result_.node.trigger);
        break;
      case OptionId::kPlacementPolicy:
        apply_policy(setting);
        break;
      case OptionId::kReplacementExpert:
        apply_choice(setting, expert_named, &result_.node.replacement_expert);
        break;
      case OptionId::kReplacementAdmission:
        apply_choice(setting, admits_by_value_named, &result_.node.admits_by_value);
        break;
      default:
        apply_number(setting);
        break;
    }
  }

  std::optional<uint64_t> number(const Setting& setting) {
    std::string what;
    const auto value =
        parse_option_number(option_description(setting.id), setting.items.front().text, &what);
    if (!value) problem(setting.items.front().source, what);
    return value;
  }

  void apply_ram(const Setting& setting) {
    if (setting.items.front().text == "auto") {
      ram_.reset();
      ram_is_auto_ = true;
      return;
    }
    ram_is_auto_ = false;
    ram_ = number(setting);
  }

  void apply_huge_pages(const Setting& setting) {
    const std::string& text = setting.items.front().text;
    if (text == "auto") {
      result_.node.huge_pages = HugePages::kAuto;
    } else if (text == "never") {
      result_.node.huge_pages = HugePages::kNever;
    } else if (text == "hugetlb") {
      result_.node.huge_pages = HugePages::kHugetlb;
    } else {
      problem(setting.items.front().source,
              fmt::format("ram.huge_pages: \"{}\" is not one of auto, never, hugetlb", text));
    }
  }

  template <typename Value>
  void apply_choice(const Setting& setting, std::optional<Value> (*named)(std::string_view),
                    Value* into) {
    const std::string& text = setting.items.front().text;
    if (const auto value = named(text)) {
      *into = *value;
      return;
    }
    const OptionDescription& option = option_description(setting.id);
    const std::vector<std::string_view> choices = option_choices(option);
    const std::string_view nearest = nearest_name(text, choices);
    const std::string hint = nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest);
    problem(setting.items.front().source, fmt::format("{}: \"{}\" is not one of {}{}", option.name,
                                                      text, fmt::join(choices, ", "), hint));
  }

  // Read here only to be checked; the service reads them again.
  void apply_orders(const Setting& setting) {
    const std::string path = setting.items.front().text;
    if (path.empty() || path == "none") return;
    const auto orders = node::DeclaredOrders::load(absolute_path(path), {});
    if (orders) {
      result_.node.orders_file = absolute_path(path);
    } else {
      problem(setting.items.front().source, "prefetch.orders: " + orders.status().message());
    }
  }

  void apply_policy(const Setting& setting) {
    std::string policy = setting.items.front().text;
    // A plugin is named relative to where the command is typed; the service works elsewhere.
    const bool is_plugin = policy.find('/') != std::string::npos;
    if (is_plugin) policy = absolute_path(policy);
    const std::string what = policy_problem(policy);
    if (!what.empty()) {
      problem(setting.items.front().source, "placement.policy: " + what);
    } else if (!is_plugin || is_readable_plugin(setting, policy)) {
      result_.node.placement_policy = policy;
    }
  }

  void apply_predictor(const Setting& setting) {
    const std::string& text = setting.items.front().text;
    result_.node.predictor_file.clear();
    if (text.empty() || text == "none") return;
    const std::string path = absolute_path(text);
    if (is_readable_plugin(setting, path)) result_.node.predictor_file = path;
  }

  // A directory that is not there yet is made when there is something to keep.
  void resolve_remembered() {
    std::string& directory = result_.node.remember_directory;
    const std::string text = remember_ ? remember_->items.front().text : "auto";
    if (text.empty() || text == "none") return;
    if (text == "auto") {
      directory = state_directory();
      if (!directory.empty()) directory += "/orders";
      return;
    }
    directory = absolute_path(text);
    struct stat status{};
    if (::stat(directory.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {
      problem(remember_->items.front().source,
              fmt::format("prefetch.remember: {} is not a directory", directory));
    }
  }

  // Only the service loads it, and says then what else is wrong with it.
  bool is_readable_plugin(const Setting& setting, const std::string& path) {
    if (::access(path.c_str(), R_OK) == 0) return true;
    problem(setting.items.front().source,
            fmt::format("{}: plugin {}: {}", option_description(setting.id).name, path,
                        std::strerror(errno)));
    return false;
  }

  // The rules themselves: what the service is given were read and checked by who started it.
  void resolve_schema() {
    NodeConfig& node = result_.node;
    if (schema_ && !schema_->items.front().text.empty()) {
      node.schema_file = absolute_path(schema_->items.front().text);
    }
    ParsedSchema schema;
    if (resolved_rules_) {
      schema =
          parse_schema_text(*resolved_rules_, command_line_.config_file, SchemaOrigin::kResolved);
    } else if (!node.schema_file.empty() && ::access(node.schema_file.c_str(), R_OK) != 0) {
      problem(schema_->items.front().source,
              fmt::format("schema: {}: {}", node.schema_file, std::strerror(errno)));
    } else if (!node.schema_file.empty()) {
      schema = load_schema(node.schema_file);
    }
    problems_.insert(problems_.end(), schema.problems.begin(), schema.problems.end());
    node.rules = std::move(schema.rules);
  }

  void check_rules_of_node() {
    const NodeConfig& node = result_.node;
    std::vector<TierCapacity> tiers;
    if (node.ram_capacity_bytes > 0) tiers.push_back({"ram", node.ram_capacity_bytes});
    for (const FileTierConfig& tier : node.tiers) tiers.push_back({tier.name, tier.capacity_bytes});
    const std::vector<std::string> found = check_rules(node.rules, tiers);
    problems_.insert(problems_.end(), found.begin(), found.end());
  }

  void apply_exclude(const Setting& setting) {
    result_.node.buffer_exclude.clear();
    for (const SettingItem& item : setting.items) {
      if (item.text.empty() || item.text.find(':') != std::string::npos) {
        problem(item.source, fmt::format("buffer.exclude: \"{}\": a pattern is not empty and "
                                         "contains no colon",
                                         item.text));
      } else {
        result_.node.buffer_exclude.push_back(item.text);
      }
    }
  }

  void apply_switch(const Setting& setting, bool* into) {
    const std::string& text = setting.items.front().text;
    if (text == "on" || text == "true" || text == "yes" || text == "1") {
      *into = true;
    } else if (text == "off" || text == "false" || text == "no" || text == "0") {
      *into = false;
    } else {
      problem(setting.items.front().source, fmt::format("{}: \"{}\" is not one of on, off",
                                                        option_description(setting.id).name, text));
    }
  }

  void apply_number(const Setting& setting) {
    if (setting.id == OptionId::kObjectsMax && setting.items.front().text == "auto") {
      result_.node.objects_max = 0;
      return;
    }
    const auto value = number(setting);
    if (!value) return;
    const auto narrow = static_cast<uint32_t>(*value);
    switch (setting.id) {
      case OptionId::kFlushDelay:
        result_.node.flush_delay_ms = narrow;
        break;
      case OptionId::kFlushStreams:
        result_.node.flush_streams = narrow;
        break;
      case OptionId::kFlushDirtyHigh:
        result_.node.flush_dirty_high_percent = narrow;
        break;
      case OptionId::kFlushRetry:
        result_.node.flush_retry_ms = narrow;
        break;
      case OptionId::kProfileIdle:
        result_.node.profile_idle_ms = narrow;
        break;
      case OptionId::kPrefetchBudget:
        result_.node.prefetch_percent = narrow;
        break;
      case OptionId::kEventsKeep:
        result_.node.events_keep_percent = narrow;
        break;
      case OptionId::kEvictLow:
        result_.node.evict_low_percent = narrow;
        break;
      case OptionId::kEvictHigh:
        result_.node.evict_high_percent = narrow;
        break;
      case OptionId::kClientsMax:
        result_.node.clients_max = narrow;
        break;
      case OptionId::kObjectsMax:
        result_.node.objects_max = *value;
        break;
      case OptionId::kFlushAmount:
        result_.node.flush_amount_bytes = *value;
        break;
      default:
        break;
    }
  }

  void resolve_name() {
    NodeConfig& node = result_.node;
    node.name = option_description(OptionId::kNodeName).default_text;
    if (name_) node.name = name_->items.front().text;
    try {
      check_node_name(node.name);
      const NodePaths paths = node_paths(node.name);
      node.run_root = paths.run_root;
      node.node_directory = paths.directory;
    } catch (const Failure& failure) {
      problem(name_ ? name_->items.front().source : "node.name",
              fmt::format("{}; {}", failure.what(), failure.remedy()));
    }
    node.private_node = node.name.rfind("run-", 0) == 0;
  }

  void check_buffer_directories() { check_directories(buffer_, &result_.node.buffer_directories); }

  void check_directories(const std::optional<Setting>& setting, std::vector<std::string>* into) {
    if (!setting) return;
    const std::string_view name = option_description(setting->id).name;
    for (const SettingItem& item : setting->items) {
      const std::string path = absolute_path(item.text);
      const DirectoryState state = read_directory_state(path, roots_);
      if (item.text.empty()) {
        problem(item.source, fmt::format("{}: an empty name", name));
      } else if (path.find(':') != std::string::npos) {
        problem(item.source, fmt::format("{}: {}: a colon in the path is not supported; use a "
                                         "symbolic link without one",
                                         name, path));
      } else if (!state.exists) {
        problem(item.source, fmt::format("{}: {} does not exist", name, path));
      } else if (!state.is_directory) {
        problem(item.source, fmt::format("{}: {} is not a directory", name, path));
      } else if (path == "/proc" || path == "/sys" || path == "/dev") {
        problem(item.source, fmt::format("{}: {} is never buffered", name, path));
      } else if (std::find(into->begin(), into->end(), path) == into->end()) {
        into->push_back(path);
      }
    }
  }

  // Scratch data that finds no room in the tiers goes below the first scratch directory.
  void resolve_swap() {
    NodeConfig& node = result_.node;
    if (node.scratch_directories.empty()) return;
    node.swap_directory = node.scratch_directories.front();
    if (swap_) {
      node.swap_capacity_bytes = *swap_;
      return;
    }
    constexpr uint64_t kTimesTheTiers = 4;
    uint64_t tiers = node.ram_capacity_bytes;
    for (const FileTierConfig& tier : node.tiers) tiers += tier.capacity_bytes;
    const DirectoryState state = read_directory_state(node.swap_directory, roots_);
    node.swap_capacity_bytes = std::min(kTimesTheTiers * tiers, state.free_bytes / 2);
  }

  void take_run_settings() {
    const NodeConfig& node = result_.node;
    const auto is_set = [this](OptionId id) { return sources_.count(id) != 0; };
    if (is_set(OptionId::kBufferMode)) result_.run_mode = node.mode;
    if (is_set(OptionId::kFlushTrigger)) result_.run_trigger = node.trigger;
    if (is_set(OptionId::kPlacementPolicy)) result_.run_policy = node.placement_policy;
  }

  void resolve_ram() {
    const MemoryState memory = read_memory_state(roots_);
    NodeConfig& node = result_.node;
    if (ram_is_auto_) {
      node.ram_capacity_bytes = default_ram_capacity(memory);
      sources_[OptionId::kRamCapacity] = ram_default_source(memory);
    }
    if (ram_) node.ram_capacity_bytes = *ram_;
    const uint64_t capacity = node.ram_capacity_bytes;
    const std::string& source = sources_[OptionId::kRamCapacity];
    if (ram_ && capacity != 0 && capacity < TierSettings::kCapacityMin) {
      problem(source, fmt::format("ram.capacity: {} is too small; at least 1 MiB, or 0 for no RAM "
                                  "tier",
                                  format_size(capacity)));
    }
    if (capacity > ram_capacity_max(memory)) {
      const bool by_limit = memory.limit_bytes && *memory.limit_bytes < memory.total_bytes;
      problem(source, fmt::format("ram.capacity: {} is larger than {} ({})", format_size(capacity),
                                  by_limit ? "the limit of the memory cgroup, " + memory.limit_file
                                           : "the memory of this machine",
                                  format_size(ram_capacity_max(memory))));
    } else if (capacity > memory.available_bytes && memory.available_bytes > 0) {
      result_.warnings.push_back(
          fmt::format("ram.capacity {} is more than the {} of memory available now; the kernel may "
                      "have to swap or to kill",
                      format_size(capacity), format_size(memory.available_bytes)));
    }
  }

  static std::string ram_default_source(const MemoryState& memory) {
    const uint64_t left = memory.limit_left_bytes.value_or(memory.available_bytes);
    if (left < memory.available_bytes) {
      return fmt::format("found: a quarter of the {} that the memory cgroup leaves",
                         format_size(left));
    }
    return fmt::format("found: a quarter of the {} of memory available",
                       format_size(memory.available_bytes));
  }

  // The later of the two options is where the contradiction was made.
  void check_contradictions() {
    const NodeConfig& node = result_.node;
    if (node.evict_low_percent >= node.evict_high_percent) {
      const std::string source = sources_.count(OptionId::kEvictHigh) != 0
                                     ? sources_[OptionId::kEvictHigh]
                                     : sources_[OptionId::kEvictLow];
      problem(source, fmt::format("evict.low_percent ({}) must be below evict.high_percent ({})",
                                  node.evict_low_percent, node.evict_high_percent));
    }
    if (node.huge_pages == HugePages::kHugetlb && node.ram_capacity_bytes == 0) {
      problem(sources_[OptionId::kRamHugePages],
              "ram.huge_pages is hugetlb, but ram.capacity is 0: there is no RAM tier");
    }
  }

  [[noreturn]] void fail() const {
    std::string message = problems_.size() == 1
                              ? "the configuration has a mistake:"
                              : fmt::format("the configuration has {} mistakes:", problems_.size());
    for (const std::string& text : problems_) message += "\n  " + text;
    throw Failure(message, "docs/configuration.md and `cairn config docs` list all options");
  }

  void list_resolved() {
    for (const OptionDescription& option : option_table()) {
      if (!concerns(option.id)) continue;
      const auto source = sources_.find(option.id);
      result_.node.resolved.push_back({std::string(option.name),
                                       option_value_text(result_, option.id),
                                       source == sources_.end() ? "default" : source->second});
    }
  }

  const CommandLineSettings& command_line_;
  const ConfigurationScope scope_;
  const MachineRoots& roots_;
  std::vector<Setting> settings_;  // lowest layer first
  std::map<OptionId, std::string> sources_;
  std::optional<Setting> name_;
  std::optional<Setting> buffer_;
  std::optional<Setting> scratch_;
  std::optional<uint64_t> swap_;
  std::optional<Setting> schema_;
  std::optional<Setting> remember_;
  std::optional<std::string> resolved_rules_;
  std::optional<uint64_t> ram_;
  bool ram_is_auto_ = true;
  TierSettings tiers_;
  std::vector<std::string> problems_;
  Configuration result_;
};

}  // namespace

Configuration resolve_configuration(const CommandLineSettings& command_line,
                                    ConfigurationScope scope, const MachineRoots& roots) {
  return Resolver(command_line, scope, roots).resolve();
}

}  // namespace cairn::cli
