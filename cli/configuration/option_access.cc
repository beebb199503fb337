// SPDX-License-Identifier: Apache-2.0
#include "cli/configuration/option_access.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/nearest_name.h"
#include "cli/terminal/paths.h"
#include "policy/rules/rule_reader.h"
#include "service/learning/declared_orders.h"

namespace cairn::cli::fields {
namespace {

void complain(const Setting& setting, Draft& draft, const std::string& text) {
  draft.complain(setting.items.front().source, fmt::format("{}: {}", setting.option->name, text));
}

// Only the service loads it, and says then what else is wrong with it.
bool is_readable_plugin(const std::string& path, const Setting& setting, Draft& draft) {
  if (::access(path.c_str(), R_OK) == 0) return true;
  complain(setting, draft, fmt::format("plugin {}: {}", path, std::strerror(errno)));
  return false;
}

bool is_none(const std::string& text) { return text.empty() || text == "none"; }

}  // namespace

std::optional<uint64_t> number_of(const Setting& setting, Draft& draft) {
  std::string what;
  const auto value = parse_option_number(*setting.option, setting.items.front().text, &what);
  if (!value) draft.complain(setting.items.front().source, what);
  return value;
}

std::optional<size_t> choice_of(const Setting& setting, Draft& draft) {
  const std::string& text = setting.items.front().text;
  const std::span<const std::string_view> choices = setting.option->choices;
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found != choices.end()) return static_cast<size_t>(found - choices.begin());
  const std::string_view nearest = nearest_name(text, choices);
  complain(setting, draft,
           fmt::format("\"{}\" is not one of {}{}", text, fmt::join(choices, ", "),
                       nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
  return std::nullopt;
}

std::optional<bool> switch_of(const Setting& setting, Draft& draft) {
  constexpr std::array<std::string_view, 4> kOn = {"on", "true", "yes", "1"};
  constexpr std::array<std::string_view, 4> kOff = {"off", "false", "no", "0"};
  const std::string& text = setting.items.front().text;
  if (std::find(kOn.begin(), kOn.end(), text) != kOn.end()) return true;
  if (std::find(kOff.begin(), kOff.end(), text) != kOff.end()) return false;
  complain(setting, draft, fmt::format("\"{}\" is not one of on, off", text));
  return std::nullopt;
}

std::string number_text(const Option& option, uint64_t value) {
  return option.type == OptionType::kSize ? format_size_exact(value) : std::to_string(value);
}

void set_tiers(const Setting& setting, Draft& draft) {
  draft.tiers.apply(setting.items, setting.source);
}

std::vector<std::string> get_tiers(const Option& /*option*/, const Configuration& configuration) {
  std::vector<std::string> texts;
  for (const FileTierConfig& tier : configuration.node.tiers) {
    texts.push_back(fmt::format("{}={}:{}{}", tier.name, tier.directory,
                                format_size_exact(tier.capacity_bytes),
                                tier.is_durable ? TierSettings::kDurableSuffix : ""));
  }
  return texts;
}

// `auto` waits for the tiers.
void set_durability(const Setting& setting, Draft& draft) {
  draft.durability.reset();
  if (is_auto(setting)) return;
  const auto index = choice_of(setting, draft);
  if (!index) return;
  draft.durability = static_cast<Durability>(*index);
  draft.configuration.node.durability = *draft.durability;
}

void set_excluded_patterns(const Setting& setting, Draft& draft) {
  std::vector<std::string>& patterns = draft.configuration.node.buffer_exclude;
  patterns.clear();
  for (const SettingItem& item : setting.items) {
    if (item.text.empty() || item.text.find(':') != std::string::npos) {
      draft.complain(item.source,
                     fmt::format("{}: \"{}\": a pattern is not empty and contains no colon",
                                 setting.option->name, item.text));
    } else {
      patterns.push_back(item.text);
    }
  }
}

void set_placement_policy(const Setting& setting, Draft& draft) {
  std::string policy = setting.items.front().text;
  // The user names a plugin relative to his directory; the service works elsewhere.
  const bool is_plugin = policy.find('/') != std::string::npos;
  if (is_plugin) policy = absolute_path(policy);
  if (const std::string what = policy_problem(policy); !what.empty()) {
    complain(setting, draft, what);
  } else if (!is_plugin || is_readable_plugin(policy, setting, draft)) {
    draft.configuration.node.placement_policy = policy;
  }
}

// Reads the file only to check it; the service reads it again.
void set_declared_orders(const Setting& setting, Draft& draft) {
  const std::string& text = setting.items.front().text;
  draft.configuration.node.orders_file.clear();
  if (is_none(text)) return;
  const std::string path = absolute_path(text);
  const auto orders = node::DeclaredOrders::load(path, {});
  if (orders) {
    draft.configuration.node.orders_file = path;
  } else {
    complain(setting, draft, orders.status().message());
  }
}

void set_predictor(const Setting& setting, Draft& draft) {
  const std::string& text = setting.items.front().text;
  draft.configuration.node.predictor_file.clear();
  if (is_none(text)) return;
  const std::string path = absolute_path(text);
  if (is_readable_plugin(path, setting, draft)) draft.configuration.node.predictor_file = path;
}

}  // namespace cairn::cli::fields
