// SPDX-License-Identifier: Apache-2.0
#include "cli/configuration/option.h"

#include <fmt/format.h>

#include "base/size_text.h"

namespace cairn::cli {
namespace {

std::string range_text(const Option& option) {
  if (option.value_max == kNoMaximum) return fmt::format("at least {}", option.value_min);
  return fmt::format("{} to {}", option.value_min, option.value_max);
}

// "`a`, `b` or `c`"
std::string choices_text(std::span<const std::string_view> choices) {
  std::string text;
  for (size_t index = 0; index < choices.size(); ++index) {
    if (index > 0) text += index + 1 == choices.size() ? " or " : ", ";
    text += fmt::format("`{}`", choices[index]);
  }
  return text;
}

}  // namespace

std::string environment_of(const Option& option) {
  std::string variable(kEnvironmentPrefix);
  for (const char letter : option.name) {
    const bool is_small = letter >= 'a' && letter <= 'z';
    variable += is_small ? static_cast<char>(letter - 'a' + 'A') : letter == '.' ? '_' : letter;
  }
  return variable;
}

std::string unit_of(const Option& option) {
  if (!option.unit.empty()) return std::string(option.unit);
  switch (option.type) {
    case OptionType::kSize:
      return "bytes, with K, M, G, T (binary)";
    case OptionType::kCount:
      return "a number";
    case OptionType::kPercent:
      return "percent of a tier";
    case OptionType::kMilliseconds:
      return "milliseconds; also `2s`, `1min`";
    case OptionType::kSwitch:
      return "`on` or `off`";
    case OptionType::kDirectoryList:
      return "list of directories; `:` between them in the environment";
    case OptionType::kPatternList:
      return "list of glob patterns; `:` between them in the environment";
    case OptionType::kPolicy:
      return choices_text(option.choices) + "; or the path of a plugin";
    default:
      return choices_text(option.choices);
  }
}

bool is_list(OptionType type) {
  return type == OptionType::kDirectoryList || type == OptionType::kPatternList ||
         type == OptionType::kTierList;
}

std::string value_text(const Option& option, const Configuration& configuration) {
  const std::vector<std::string> values = option.access.get(option, configuration);
  if (values.empty()) return std::string(option.when_empty);
  return fmt::format("{}", fmt::join(values, option.type == OptionType::kTierList ? " " : ":"));
}

std::optional<uint64_t> parse_option_number(const Option& option, std::string_view text,
                                            std::string* problem) {
  std::optional<uint64_t> value;
  const char* expected = "a whole number";
  switch (option.type) {
    case OptionType::kSize:
      value = parse_size(text);
      expected = "a size such as 512M or 4G";
      break;
    case OptionType::kMilliseconds:
      value = parse_duration_ms(text);
      expected = "a duration such as 500 (milliseconds) or 2s";
      break;
    case OptionType::kPercent:
      if (!text.empty() && text.back() == '%') text.remove_suffix(1);
      value = parse_count(text);
      expected = "a percentage";
      break;
    default:
      value = parse_count(text);
      break;
  }
  if (!value) {
    *problem = fmt::format("{}: \"{}\" is not {}", option.name, text, expected);
    return std::nullopt;
  }
  if (*value < option.value_min || *value > option.value_max) {
    *problem =
        fmt::format("{}: {} is out of range, allowed is {}", option.name, text, range_text(option));
    return std::nullopt;
  }
  return value;
}

}  // namespace cairn::cli
