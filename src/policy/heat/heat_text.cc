// SPDX-License-Identifier: Apache-2.0
#include "policy/heat/heat_text.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <limits>
#include <numbers>
#include <string_view>
#include <utility>

#include "base/size_text.h"

namespace cairn {
namespace {

constexpr double kCold = -std::numeric_limits<double>::infinity();
constexpr std::array<const char*, 8> kSteps = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::size_t kLabelColumns = 9;

[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...) {
  std::array<char, 256> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  return text.data();
}

// Three digits; also of scores that are smaller than any number.
std::string score_text(double logarithm) {
  const double decimal = logarithm / std::numbers::ln10;
  if (std::abs(decimal) < 4) return formatted("%.3g", std::exp(logarithm));
  const double exponent = std::floor(decimal);
  return formatted("%.2fe%+.0f", std::pow(10.0, decimal - exponent), exponent);
}

// What a cell shows of a score, where `highest` is that of the hottest segment.
const char* mark_of(double logarithm, double highest) {
  if (logarithm == kCold) return " ";
  const double halvings = std::floor((highest - logarithm) / std::numbers::ln2);
  if (halvings >= static_cast<double>(kSteps.size())) return "·";
  return kSteps[kSteps.size() - 1 - static_cast<std::size_t>(halvings)];
}

std::uint64_t segments_in(const HeatPicture& picture) {
  const std::uint64_t bytes = std::max<std::uint64_t>(picture.segment_bytes, 1);
  const std::uint64_t filled = picture.file_bytes / bytes + (picture.file_bytes % bytes != 0);
  return std::max<std::uint64_t>(filled, picture.logarithms.size());
}

// How many bytes a well-formed UTF-8 character at the front has; 0 when there is none (Unicode
// 15, table 3-7).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [text](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  for (std::size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xc0U) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  // Overlong forms, surrogates, and what lies behind the last character.
  const bool is_wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
  return is_wrong ? 0 : length;
}

// A terminal obeys control characters, and a file may be called anything.
std::string printable(std::string_view text) {
  std::string printed;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    // The second range of control characters is C2 80 to C2 9F.
    const bool is_control =
        first < 0x20 || first == 0x7f ||
        (length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0);
    const std::size_t bytes = std::max<std::size_t>(length, 1);
    printed += length == 0 || is_control ? std::string_view("?") : text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return printed;
}

std::string title_of(const HeatPicture& picture, std::uint64_t segments, std::uint64_t per_cell) {
  std::string title = printable(picture.name) + "\n" + format_size(picture.file_bytes) + " in " +
                      std::to_string(segments) + (segments == 1 ? " segment" : " segments") +
                      " of " + format_size(picture.segment_bytes) + ", epoch " +
                      std::to_string(picture.epochs);
  if (per_cell > 1) title += "; a cell is " + format_size(picture.segment_bytes * per_cell);
  return title + "\n";
}

std::string legend_of(double highest) {
  if (highest == kCold) return "nothing of it was accessed\n";
  const double lowest = highest - static_cast<double>(kSteps.size()) * std::numbers::ln2;
  std::string legend = "blank: not accessed; · <= " + score_text(lowest) + " < ";
  for (const char* step : kSteps) legend += step;
  return legend + " <= " + score_text(highest) + ", each step twice the score\n";
}

std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const auto first = static_cast<unsigned char>(character.front());
    if (length == 0) {
      quoted += "\\ufffd";
    } else if (first == '"' || first == '\\') {
      quoted += '\\';
      quoted += character;
    } else if (first < 0x20 || first == 0x7f) {
      quoted += formatted("\\u%04x", first);
    } else {
      quoted += character;
    }
    text.remove_prefix(character.size());
  }
  return quoted + "\"";
}

}  // namespace

HeatPicture picture_of(const FileHeat& heat, std::string name, std::int64_t now_ns) {
  HeatPicture picture{std::move(name), heat.file_bytes(), heat.segment_bytes(), heat.epochs(), {}};
  picture.logarithms.reserve(heat.segment_count());
  for (std::uint32_t segment = 0; segment < heat.segment_count(); ++segment)
    picture.logarithms.push_back(heat.logarithm_at(segment, now_ns));
  return picture;
}

std::string heat_text(const HeatPicture& picture, const HeatTextSize& size) {
  const std::uint64_t segments = segments_in(picture);
  const std::uint64_t cells_max = size.cells_per_row * size.rows_max;
  const std::uint64_t per_cell = std::max<std::uint64_t>((segments + cells_max - 1) / cells_max, 1);
  const std::uint64_t cells = (segments + per_cell - 1) / per_cell;
  std::vector<double> hottest(cells, kCold);
  double highest = kCold;
  for (std::size_t segment = 0; segment < picture.logarithms.size(); ++segment) {
    double& cell = hottest[segment / per_cell];
    cell = std::max(cell, picture.logarithms[segment]);
    highest = std::max(highest, cell);
  }
  std::string text = title_of(picture, segments, per_cell);
  for (std::uint64_t first = 0; first < cells; first += size.cells_per_row) {
    const std::string label = format_size(first * per_cell * picture.segment_bytes);
    text.append(kLabelColumns - std::min(kLabelColumns, label.size()), ' ');
    text += label + " |";
    for (std::uint64_t cell = first; cell < first + size.cells_per_row; ++cell)
      text += cell < cells ? mark_of(hottest[cell], highest) : " ";
    text += "|\n";
  }
  return text + legend_of(highest);
}

std::string heat_json_lines(const HeatPicture& picture) {
  std::string lines = "{\"name\": " + json_string(picture.name) +
                      formatted(", \"file_bytes\": %" PRIu64 ", \"segment_bytes\": %" PRIu64
                                ", \"epochs\": %" PRIu32 "}\n",
                                picture.file_bytes, picture.segment_bytes, picture.epochs);
  for (std::size_t segment = 0; segment < picture.logarithms.size(); ++segment) {
    const double logarithm = picture.logarithms[segment];
    if (!std::isfinite(logarithm)) continue;
    const std::uint64_t offset = segment * picture.segment_bytes;
    std::uint64_t bytes = picture.segment_bytes;
    if (picture.file_bytes > offset) bytes = std::min(bytes, picture.file_bytes - offset);
    lines += formatted("{\"segment\": %zu, \"offset\": %" PRIu64 ", \"bytes\": %" PRIu64
                       ", \"score_log2\": %.9g}\n",
                       segment, offset, bytes, logarithm / std::numbers::ln2);
  }
  return lines;
}

}  // namespace cairn
