// SPDX-License-Identifier: Apache-2.0
#include "base/size_text.h"

#include <array>
#include <cctype>
#include <cstdio>

#include "base/check.h"

namespace cairn {
namespace {

constexpr uint64_t kSizeMax = (uint64_t{1} << 63) - 1;
constexpr std::array<char, 6> kUnitLetters = {'K', 'M', 'G', 'T', 'P', 'E'};

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  return text;
}

std::string to_lower(std::string_view text) {
  std::string lower;
  for (const char letter : text) {
    lower.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(letter))));
  }
  return lower;
}

// A number with an optional decimal fraction and what follows it. The fraction is kept apart so
// that whole numbers stay exact beyond 2^53.
struct NumberAndUnit {
  uint64_t whole = 0;
  double fraction = 0;
  std::string unit;
};

std::optional<NumberAndUnit> split_number(std::string_view text) {
  text = trim(text);
  NumberAndUnit parts;
  size_t index = 0;
  for (; index < text.size() && text[index] >= '0' && text[index] <= '9'; ++index) {
    const auto digit = static_cast<uint64_t>(text[index] - '0');
    if (parts.whole > (kSizeMax - digit) / 10) return std::nullopt;
    parts.whole = parts.whole * 10 + digit;
  }
  if (index == 0) return std::nullopt;
  if (index < text.size() && text[index] == '.') {
    double weight = 0.1;
    const size_t fraction_start = ++index;
    for (; index < text.size() && text[index] >= '0' && text[index] <= '9'; ++index) {
      parts.fraction += weight * (text[index] - '0');
      weight /= 10;
    }
    if (index == fraction_start) return std::nullopt;
  }
  parts.unit = to_lower(trim(text.substr(index)));
  return parts;
}

// The nearest whole number. std::llround() would be all that the command needs of libm, which the
// dynamic linker would load for each `cairn run`.
uint64_t rounded(double value) {
  CAIRN_DCHECK(value >= 0);
  return static_cast<uint64_t>(value + 0.5);  // NOLINT(bugprone-incorrect-roundings): not below 0
}

std::optional<uint64_t> scale(const NumberAndUnit& parts, uint64_t factor) {
  CAIRN_DCHECK(factor > 0);
  if (parts.whole > kSizeMax / factor) return std::nullopt;
  const uint64_t whole = parts.whole * factor;
  const uint64_t rest = rounded(parts.fraction * static_cast<double>(factor));
  if (whole > kSizeMax - rest) return std::nullopt;
  return whole + rest;
}

std::string print(const char* format, double value, const char* unit) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value, unit);
  return text.data();
}

// Three significant digits without trailing zeros: 4, 1.25, 12.5, 931.
std::string three_digits(double value, const char* unit) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::array<char, 64> number{};
  std::snprintf(number.data(), number.size(), "%.*f", decimals, value);
  std::string text = number.data();
  if (decimals > 0) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return text + " " + unit;
}

}  // namespace

std::optional<uint64_t> parse_size(std::string_view text) {
  const auto parts = split_number(text);
  if (!parts) return std::nullopt;
  const std::string& unit = parts->unit;
  if (unit.empty() || unit == "b") {
    if (parts->fraction != 0) return std::nullopt;
    return parts->whole;
  }
  uint64_t factor = 1;
  for (const char letter : kUnitLetters) {
    factor *= 1024;
    const std::string plain(1, static_cast<char>(std::tolower(letter)));
    if (unit == plain || unit == plain + "b" || unit == plain + "ib") return scale(*parts, factor);
  }
  return std::nullopt;
}

std::optional<uint64_t> parse_duration_ms(std::string_view text) {
  const auto parts = split_number(text);
  if (!parts) return std::nullopt;
  if (parts->unit.empty() || parts->unit == "ms") return scale(*parts, 1);
  if (parts->unit == "s") return scale(*parts, 1000);
  if (parts->unit == "min" || parts->unit == "m") return scale(*parts, 60'000);
  if (parts->unit == "h") return scale(*parts, 3'600'000);
  return std::nullopt;
}

std::optional<uint64_t> parse_count(std::string_view text) {
  const auto parts = split_number(text);
  if (!parts || !parts->unit.empty() || parts->fraction != 0) return std::nullopt;
  return parts->whole;
}

std::string format_size(uint64_t bytes) {
  static constexpr std::array<const char*, 7> kUnits = {"B",   "KiB", "MiB", "GiB",
                                                        "TiB", "PiB", "EiB"};
  static_assert(kUnits.size() == kUnitLetters.size() + 1, "each letter is that of a unit");
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  // 999.5 and not 1024: "0.98 GiB" reads better than "1003 MiB", and never needs a fourth digit.
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return three_digits(value, kUnits.at(unit));
}

std::string format_size_exact(uint64_t bytes) {
  std::string suffix;
  for (const char letter : kUnitLetters) {
    if (bytes == 0 || bytes % 1024 != 0) break;
    bytes /= 1024;
    suffix = letter;
  }
  return std::to_string(bytes) + suffix;
}

std::string format_duration(double seconds) {
  if (!(seconds > 0)) return "0 s";
  if (seconds < 0.0095) return print("%.1f %s", seconds * 1e3, "ms");
  if (seconds < 0.9995) return print("%.0f %s", seconds * 1e3, "ms");
  if (seconds < 9.995) return print("%.2f %s", seconds, "s");
  if (seconds < 99.95) return print("%.1f %s", seconds, "s");
  const auto whole = static_cast<unsigned long long>(rounded(seconds));
  std::array<char, 64> text{};
  if (whole < 3600) {
    std::snprintf(text.data(), text.size(), "%llu min %02llu s", whole / 60, whole % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%llu h %02llu min", whole / 3600, whole / 60 % 60);
  }
  return text.data();
}

}  // namespace cairn
