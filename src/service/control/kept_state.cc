// SPDX-License-Identifier: Apache-2.0
#include "service/control/kept_state.h"

#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "service/control/kept_json.h"
#include "service/process/log.h"

namespace cairn::node {
namespace {

constexpr std::uint64_t kVersion = 1;

Status damaged(const std::string& what) {
  return {StatusCode::kInvalid, "what the service before this one kept is damaged: " + what};
}

// The numbers of the policies are in the handling of files, so they have to be the same.
Json policies_json(const PlacementEngine& placement) {
  Json names = Json::array();
  for (unsigned number = 0; number <= UINT8_MAX; ++number) {
    const std::string name = placement.name_of(static_cast<std::uint8_t>(number));
    if (name.empty()) break;
    names.push_back(name);
  }
  return names;
}

Json rules_json(const RulesSnapshot& rules) {
  Json of_runs = Json::array();
  for (const auto& [run, list] : rules.of_runs)
    of_runs.push_back({{"run", run}, {"rules", rules_to_json(list)}});
  return {{"live", rules_to_json(rules.live)},
          {"of_runs", of_runs},
          {"schema", rules_to_json(rules.schema)}};
}

Json hints_json(const std::vector<ArrayHints::Said>& hints) {
  Json list = Json::array();
  for (const ArrayHints::Said& said : hints)
    list.push_back({{"run", said.run}, {"text", said.text}});
  return list;
}

}  // namespace

// The connections come first: a run that ends meanwhile, and whose account is gone from this text
// already, only has to end again.
void KeptState::save() {
  if (text_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  Json kept = {{"version", kVersion}};
  kept["sessions"] = sessions_.snapshot();
  kept["policies"] = policies_json(of_.placement);
  kept["accounts"] = accounts_to_json(of_.accounts.snapshot());
  kept["scratch"] = scratch_to_json(of_.scratch.snapshot());
  kept["rules"] = rules_json(of_.rules.snapshot());
  kept["orders"] = orders_to_json(of_.declarations.snapshot());
  kept["hints"] = hints_json(of_.hints.snapshot());
  const bool is_kept = text_->put(packed(kept));
  if (!is_kept && !was_too_long_)
    log::warn("a service that takes this one's place would not know of all runs and rules");
  was_too_long_ = !is_kept;
}

Status KeptState::restore() {
  CAIRN_CHECK(has_heritage());
  const Json kept = unpacked(text_->get());
  if (!kept.is_object()) return damaged("it is no object");
  try {
    return restore_from(kept);
  } catch (const Json::exception& wrong) {
    // A field of another kind: the library says so by throwing.
    return damaged(wrong.what());
  }
}

Status KeptState::restore_from(const Json& kept) {
  if (number_at(kept, "version") != kVersion) return damaged("it is of another version");
  CAIRN_RETURN_IF_ERROR(restore_policies(kept.at("policies")));
  CAIRN_RETURN_IF_ERROR(restore_runs(kept.at("sessions")));
  const std::set<std::uint32_t> runs = runs_under_way();
  CAIRN_RETURN_IF_ERROR(restore_accounts(kept.at("accounts"), runs));
  CAIRN_RETURN_IF_ERROR(restore_scratch(kept.at("scratch"), runs));
  CAIRN_RETURN_IF_ERROR(restore_rules(kept.at("rules"), runs));
  CAIRN_RETURN_IF_ERROR(restore_hints(kept.at("hints"), runs));
  of_.declarations.restore(orders_from_json(kept.at("orders")));
  return Status::ok();
}

Status KeptState::restore_policies(const Json& names) const {
  for (std::size_t at = 0; at < names.size(); ++at) {
    const auto name = names.at(at).get<std::string>();
    const auto number = of_.placement.number_of(name);
    if (!number) return number.status();
    if (*number != at) return damaged("policy " + name + " has another number");
  }
  return Status::ok();
}

Status KeptState::restore_runs(const Json& sessions) {
  for (const Json& text : sessions) {
    const auto begun = sessions_.add(text.get_ref<const std::string&>());
    if (!begun) return damaged(begun.status().message());
    if (!*begun) continue;
    const Run& run = (*begun)->run;
    if (!of_.runs.begin(run)) return damaged("run " + run.id + " is there twice");
    of_.flusher.set_weight(run.number(), (*begun)->weight);
  }
  return Status::ok();
}

std::set<std::uint32_t> KeptState::runs_under_way() const {
  std::set<std::uint32_t> numbers = {0};  // what is the node's own
  for (const Run& run : of_.runs.all()) numbers.insert(run.number());
  return numbers;
}

Status KeptState::restore_accounts(const Json& kept, const std::set<std::uint32_t>& runs) const {
  AccountsSnapshot accounts = accounts_from_json(kept);
  std::erase_if(accounts.of_runs,
                [&](const auto& each) { return each.run != 0 && !runs.contains(each.run); });
  std::erase_if(accounts.of_rules, [&](const auto& each) { return !runs.contains(each.rule.run); });
  return of_.accounts.restore(accounts);
}

Status KeptState::restore_scratch(const Json& kept, const std::set<std::uint32_t>& runs) const {
  ScratchSpace::Snapshot scratch = scratch_from_json(kept);
  std::erase_if(scratch.places, [&](const auto& each) { return !runs.contains(each.run); });
  return of_.scratch.restore(scratch);
}

Status KeptState::restore_rules(const Json& kept, const std::set<std::uint32_t>& runs) const {
  RulesSnapshot rules;
  auto live = rules_from_json(kept.at("live"));
  if (!live) return damaged(live.status().message());
  auto schema = rules_from_json(kept.at("schema"));
  if (!schema) return damaged(schema.status().message());
  rules.live = std::move(live.value());
  rules.schema = std::move(schema.value());
  for (const Json& each : kept.at("of_runs")) {
    auto list = rules_from_json(each.at("rules"));
    if (!list) return damaged(list.status().message());
    const std::uint32_t run = small_number_at(each, "run");
    if (run != 0 && runs.contains(run)) rules.of_runs.emplace(run, std::move(list.value()));
  }
  return of_.rules.restore(rules);
}

Status KeptState::restore_hints(const Json& kept, const std::set<std::uint32_t>& runs) const {
  for (const Json& each : kept) {
    const auto hint = arrays::parse_array_hint(each.at("text").get<std::string>());
    if (!hint) return damaged(hint.status().message());
    const std::uint32_t run = small_number_at(each, "run");
    if (!runs.contains(run)) continue;
    if (const Status status = of_.hints.add(run, *hint); !status) return damaged(status.message());
  }
  return Status::ok();
}

}  // namespace cairn::node
