// SPDX-License-Identifier: Apache-2.0
#include "service/control/kept_json.h"

#include <algorithm>
#include <utility>

#include "service/treatment/rule_json.h"

namespace cairn::node {
namespace {

// The tiers in which anything is reserved, with how many slabs.
Json slabs_to_json(const AccountsSnapshot::Slabs& slabs) {
  Json list = Json::array();
  for (std::size_t tier = 0; tier < slabs.size(); ++tier) {
    if (slabs[tier] != 0) list.push_back({{"tier", tier}, {"slabs", slabs[tier]}});
  }
  return list;
}

AccountsSnapshot::Slabs slabs_from_json(const Json& list) {
  AccountsSnapshot::Slabs slabs{};
  for (const Json& each : list) {
    const std::uint64_t tier = number_at(each, "tier");
    // No tier has as much, so the registry refuses it.
    if (tier >= slabs.size()) {
      slabs.fill(UINT32_MAX);
    } else {
      slabs[tier] = small_number_at(each, "slabs");
    }
  }
  return slabs;
}

AccountId account_at(const Json& object) {
  return static_cast<AccountId>(
      static_cast<std::uint8_t>(std::min<std::uint64_t>(number_at(object, "account"), UINT8_MAX)));
}

std::string text_at(const Json& object, const char* field) {
  return object.at(field).get<std::string>();
}

}  // namespace

std::string packed(const Json& value) {
  std::string text;
  Json::to_cbor(value, text);
  return text;
}

Json unpacked(const std::string& text) {
  // The library throws because of a length that no vector has, although it is not to throw.
  try {
    return Json::from_cbor(text, true, false);
  } catch (const Json::exception&) {
    return Json(Json::value_t::discarded);
  }
}

std::uint64_t number_at(const Json& object, const char* field) {
  return object.at(field).get_ref<const Json::number_unsigned_t&>();
}

std::uint32_t small_number_at(const Json& object, const char* field) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(number_at(object, field), UINT32_MAX));
}

Json run_to_json(const Run& run) {
  return {{"id", run.id},
          {"command_line", run.command_line},
          {"directory", run.directory},
          {"began_ns", run.began_ns},
          {"flushed_bytes_before", run.flushed_bytes_before}};
}

Run run_from_json(const Json& object) {
  Run run;
  run.id = text_at(object, "id");
  run.command_line = object.at("command_line").get<std::vector<std::string>>();
  run.directory = text_at(object, "directory");
  run.began_ns = object.at("began_ns").get<std::int64_t>();
  run.flushed_bytes_before = number_at(object, "flushed_bytes_before");
  return run;
}

Json accounts_to_json(const AccountsSnapshot& accounts) {
  Json of_runs = Json::array();
  for (const AccountsSnapshot::OfRun& each : accounts.of_runs) {
    of_runs.push_back({{"run", each.run},
                       {"account", raw(each.account)},
                       {"weight", each.weight},
                       {"reserved", slabs_to_json(each.reserved)}});
  }
  Json of_rules = Json::array();
  for (const AccountsSnapshot::OfRule& each : accounts.of_rules) {
    of_rules.push_back({{"run", each.rule.run},
                        {"position", each.rule.position},
                        {"pattern", each.rule.pattern},
                        {"account", raw(each.account)},
                        {"reserved", slabs_to_json(each.reserved)}});
  }
  Json free = Json::array();
  for (const auto& [account, pattern] : accounts.free_for_rules) {
    if (!pattern.empty()) free.push_back({{"account", raw(account)}, {"pattern", pattern}});
  }
  return {{"of_runs", of_runs}, {"of_rules", of_rules}, {"free_for_rules", free}};
}

AccountsSnapshot accounts_from_json(const Json& object) {
  AccountsSnapshot accounts;
  for (const Json& each : object.at("of_runs")) {
    accounts.of_runs.push_back({small_number_at(each, "run"), account_at(each),
                                small_number_at(each, "weight"),
                                slabs_from_json(each.at("reserved"))});
  }
  for (const Json& each : object.at("of_rules")) {
    const RuleKey rule{small_number_at(each, "run"), small_number_at(each, "position"),
                       text_at(each, "pattern")};
    accounts.of_rules.push_back({rule, account_at(each), slabs_from_json(each.at("reserved"))});
  }
  for (const Json& each : object.at("free_for_rules"))
    accounts.free_for_rules.emplace_back(account_at(each), text_at(each, "pattern"));
  return accounts;
}

Json rules_to_json(const std::vector<FileRule>& rules) {
  Json list = Json::array();
  for (const FileRule& rule : rules) list.push_back(rule_to_json(rule));
  return list;
}

Result<std::vector<FileRule>> rules_from_json(const Json& list) {
  std::vector<FileRule> rules;
  for (const Json& object : list) {
    auto rule = rule_from_json(object);
    if (!rule) return rule.status();
    rules.push_back(std::move(rule.value()));
  }
  return rules;
}

Json scratch_to_json(const ScratchSpace::Snapshot& scratch) {
  Json places = Json::array();
  for (const ScratchSpace::Place& place : scratch.places)
    places.push_back({{"run", place.run}, {"target", place.target}, {"source", place.source}});
  return {{"made", scratch.made}, {"places", places}};
}

ScratchSpace::Snapshot scratch_from_json(const Json& object) {
  ScratchSpace::Snapshot scratch;
  scratch.made = small_number_at(object, "made");
  for (const Json& place : object.at("places")) {
    scratch.places.push_back(
        {small_number_at(place, "run"), text_at(place, "target"), text_at(place, "source")});
  }
  return scratch;
}

Json orders_to_json(const std::vector<OrderDeclarations::Said>& said) {
  Json list = Json::array();
  for (const OrderDeclarations::Said& each : said)
    list.push_back({{"path", each.path}, {"fingerprint", each.fingerprint}});
  return list;
}

std::vector<OrderDeclarations::Said> orders_from_json(const Json& list) {
  std::vector<OrderDeclarations::Said> said;
  for (const Json& each : list)
    said.push_back({text_at(each, "path"), text_at(each, "fingerprint")});
  return said;
}

}  // namespace cairn::node
