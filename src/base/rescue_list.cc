// SPDX-License-Identifier: Apache-2.0
#include "base/rescue_list.h"

#include <array>
#include <charconv>

namespace cairn {
namespace {

constexpr std::size_t kColumns = 10;
constexpr std::string_view kBegun = "begun\t";
constexpr std::string_view kNothing = "-";  // in the place of a text that is empty

bool is_plain(char letter) {
  const auto code = static_cast<unsigned char>(letter);
  return code >= 0x20 && code != 0x7f && letter != '\\';
}

// Tabs and ends of lines separate: \xHH stands for them and for other control characters.
std::string escaped(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  if (text == kNothing) return "\\x2d";
  std::string out;
  for (const char letter : text) {
    if (is_plain(letter)) {
      out += letter;
      continue;
    }
    const auto code = static_cast<unsigned char>(letter);
    out += "\\x";
    out += kDigits[code >> 4];
    out += kDigits[code & 15];
  }
  return out.empty() ? std::string(kNothing) : out;
}

std::optional<std::string> plain(std::string_view text) {
  std::string out;
  if (text == kNothing) return out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      out += text[at];
      continue;
    }
    unsigned code = 0;
    if (at + 4 > text.size() || text[at + 1] != 'x') return std::nullopt;
    const char* end = text.data() + at + 4;
    const auto [parsed, error] = std::from_chars(text.data() + at + 2, end, code, 16);
    if (error != std::errc() || parsed != end) return std::nullopt;
    out += static_cast<char>(code);
    at += 3;
  }
  return out;
}

template <typename Number>
bool read_number(std::string_view text, Number* number) {
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && parsed == end;
}

}  // namespace

std::string rescue_list_head() {
  return "# cairn rescue list 1: offset length saved-in size mtime-ns stored-mtime-ns device inode "
         "path why\n";
}

std::string rescue_line(const RescueEntry& entry) {
  return std::to_string(entry.offset) + "\t" + std::to_string(entry.length) + "\t" +
         escaped(entry.saved) + "\t" + std::to_string(entry.size) + "\t" +
         std::to_string(entry.mtime_ns) + "\t" + std::to_string(entry.stored_ns) + "\t" +
         std::to_string(entry.device) + "\t" + std::to_string(entry.inode) + "\t" +
         escaped(entry.path) + "\t" + escaped(entry.why) + "\n";
}

std::optional<RescueEntry> parse_rescue_line(std::string_view line) {
  std::array<std::string_view, kColumns> columns;
  for (std::size_t column = 0; column < kColumns; ++column) {
    const std::size_t end = line.find('\t');
    if ((end == std::string_view::npos) != (column + 1 == kColumns)) return std::nullopt;
    columns[column] = line.substr(0, end);
    line = end == std::string_view::npos ? std::string_view() : line.substr(end + 1);
  }
  RescueEntry entry;
  const bool has_numbers =
      read_number(columns[0], &entry.offset) && read_number(columns[1], &entry.length) &&
      read_number(columns[3], &entry.size) && read_number(columns[4], &entry.mtime_ns) &&
      read_number(columns[5], &entry.stored_ns) && read_number(columns[6], &entry.device) &&
      read_number(columns[7], &entry.inode);
  auto saved = plain(columns[2]);
  auto path = plain(columns[8]);
  auto why = plain(columns[9]);
  if (!has_numbers || !saved || !path || !why) return std::nullopt;
  entry.saved = std::move(*saved);
  entry.path = std::move(*path);
  entry.why = std::move(*why);
  return entry;
}

std::string begun_line(const RescueEntry& entry) {
  return std::string(kBegun) + escaped(entry.saved) + "\t" + std::to_string(entry.stored_ns) + "\n";
}

std::optional<std::string> parse_begun_line(std::string_view line) {
  if (!line.starts_with(kBegun)) return std::nullopt;
  line.remove_prefix(kBegun.size());
  const std::size_t end = line.find('\t');
  std::int64_t stored_ns = 0;
  if (end == std::string_view::npos || !read_number(line.substr(end + 1), &stored_ns))
    return std::nullopt;
  return plain(line.substr(0, end));
}

}  // namespace cairn
