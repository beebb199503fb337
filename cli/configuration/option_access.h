// SPDX-License-Identifier: Apache-2.0
//
// The ways in which values of options enter and leave a configuration, for the rows of the table.
//
// A row names the field once: `.access = fields::kNumber<&NodeConfig::flush_streams>`. The
// members are those of NodeConfig and Configuration, and of Draft for settings that wait.
//
// Thread safety: pure functions but for the draft. Ownership: nothing is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/node_config.h"
#include "base/size_text.h"
#include "cli/configuration/draft.h"
#include "cli/configuration/option.h"

namespace cairn::cli::fields {

template <typename Value>
Value& field(Configuration& configuration, Value NodeConfig::* member) {
  return configuration.node.*member;
}
template <typename Value>
Value& field(Configuration& configuration, Value Configuration::* member) {
  return configuration.*member;
}
template <typename Value>
const Value& field(const Configuration& configuration, Value NodeConfig::* member) {
  return configuration.node.*member;
}
template <typename Value>
const Value& field(const Configuration& configuration, Value Configuration::* member) {
  return configuration.*member;
}

// What a setting of one value says. Returns: nothing on a mistake, which the draft has then.
std::optional<uint64_t> number_of(const Setting& setting, Draft& draft);
std::optional<size_t> choice_of(const Setting& setting, Draft& draft);  // index among the choices
std::optional<bool> switch_of(const Setting& setting, Draft& draft);

inline bool is_auto(const Setting& setting) { return setting.items.front().text == "auto"; }

std::string number_text(const Option& option, uint64_t value);

// Numbers and sizes.
template <auto Member>
void set_number(const Setting& setting, Draft& draft) {
  auto& value = field(draft.configuration, Member);
  if (const auto given = number_of(setting, draft))
    value = static_cast<std::remove_reference_t<decltype(value)>>(*given);
}
template <auto Member>
std::vector<std::string> get_number(const Option& option, const Configuration& configuration) {
  return {number_text(option, field(configuration, Member))};
}
template <auto Member>
inline constexpr OptionAccess kNumber = {set_number<Member>, get_number<Member>};

// Numbers of which 0 stands for "auto".
template <auto Member>
void set_number_or_auto(const Setting& setting, Draft& draft) {
  if (is_auto(setting)) {
    field(draft.configuration, Member) = 0;
  } else {
    set_number<Member>(setting, draft);
  }
}
template <auto Member>
std::vector<std::string> get_number_or_auto(const Option& option,
                                            const Configuration& configuration) {
  if (field(configuration, Member) == 0) return {"auto"};
  return get_number<Member>(option, configuration);
}
template <auto Member>
inline constexpr OptionAccess kNumberOrAuto = {set_number_or_auto<Member>,
                                               get_number_or_auto<Member>};

// Sizes that the machine decides where a layer says "auto".
template <auto Waiting>
void set_size_or_auto(const Setting& setting, Draft& draft) {
  draft.*Waiting = is_auto(setting) ? std::nullopt : number_of(setting, draft);
}
template <auto Waiting, auto Member>
inline constexpr OptionAccess kSizeOrAuto = {set_size_or_auto<Waiting>, get_number<Member>};
// Here 0 says that the machine has nothing of that kind.
template <auto Waiting, auto Member>
inline constexpr OptionAccess kSizeIfAny = {set_size_or_auto<Waiting>, get_number_or_auto<Member>};

// Enumerations and truths whose values are the indices of the choices.
template <auto Member>
void set_choice(const Setting& setting, Draft& draft) {
  auto& value = field(draft.configuration, Member);
  if (const auto index = choice_of(setting, draft))
    value = static_cast<std::remove_reference_t<decltype(value)>>(*index);
}
template <auto Member>
std::vector<std::string> get_choice(const Option& option, const Configuration& configuration) {
  return {std::string(option.choices[static_cast<size_t>(field(configuration, Member))])};
}
template <auto Member>
inline constexpr OptionAccess kChoice = {set_choice<Member>, get_choice<Member>};

template <auto Member>
void set_switch(const Setting& setting, Draft& draft) {
  if (const auto on = switch_of(setting, draft)) field(draft.configuration, Member) = *on;
}
template <auto Member>
std::vector<std::string> get_switch(const Option& /*option*/, const Configuration& configuration) {
  return {field(configuration, Member) ? "on" : "off"};
}
template <auto Member>
inline constexpr OptionAccess kOnOrOff = {set_switch<Member>, get_switch<Member>};

// Texts; an empty one is no value.
template <auto Member>
std::vector<std::string> get_text(const Option& /*option*/, const Configuration& configuration) {
  const std::string& text = field(configuration, Member);
  return text.empty() ? std::vector<std::string>() : std::vector<std::string>{text};
}
template <auto Member>
void set_chosen_text(const Setting& setting, Draft& draft) {
  if (const auto index = choice_of(setting, draft))
    field(draft.configuration, Member) = setting.items.front().text;
}
template <auto Member>
inline constexpr OptionAccess kChosenText = {set_chosen_text<Member>, get_text<Member>};

// Texts that wait.
template <auto Waiting>
void set_waiting_text(const Setting& setting, Draft& draft) {
  draft.*Waiting = setting.items.front();
}
template <auto Waiting, auto Member>
inline constexpr OptionAccess kWaitingText = {set_waiting_text<Waiting>, get_text<Member>};

// Lists that wait.
template <auto Member>
std::vector<std::string> get_list(const Option& /*option*/, const Configuration& configuration) {
  return field(configuration, Member);
}
template <auto Waiting>
void set_waiting_list(const Setting& setting, Draft& draft) {
  draft.*Waiting = setting.items;
}
template <auto Waiting, auto Member>
inline constexpr OptionAccess kWaitingList = {set_waiting_list<Waiting>, get_list<Member>};

// Options that are like no other.
void set_tiers(const Setting& setting, Draft& draft);
std::vector<std::string> get_tiers(const Option& option, const Configuration& configuration);
void set_durability(const Setting& setting, Draft& draft);
void set_excluded_patterns(const Setting& setting, Draft& draft);
void set_placement_policy(const Setting& setting, Draft& draft);
void set_declared_orders(const Setting& setting, Draft& draft);
void set_predictor(const Setting& setting, Draft& draft);

}  // namespace cairn::cli::fields
