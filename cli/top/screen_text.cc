// SPDX-License-Identifier: Apache-2.0
#include "cli/top/screen_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/check.h"

namespace cairn::cli {
namespace {

struct Glyph {
  std::string bytes;
  unsigned columns = 1;
};

// The next character of UTF-8 in its shortest form; 0 where there is none.
char32_t decode(std::string_view text, std::size_t* length) {
  const auto first = static_cast<unsigned char>(text.front());
  *length = 1;
  if (first < 0x80) return first;
  const unsigned more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  if (first < 0xC2 || first > 0xF4 || text.size() <= more) return 0;
  char32_t code = first & (0x3FU >> more);
  for (unsigned index = 1; index <= more; ++index) {
    const auto byte = static_cast<unsigned char>(text[index]);
    if ((byte & 0xC0U) != 0x80) return 0;
    code = code << 6U | (byte & 0x3FU);
  }
  constexpr std::array<char32_t, 4> kLeast = {0, 0x80, 0x800, 0x10000};
  if (code < kLeast[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return 0;
  *length = more + 1;
  return code;
}

struct Range {
  char32_t first;
  char32_t last;
};

bool is_in(char32_t code, const std::vector<Range>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [code](const Range& range) {
    return code >= range.first && code <= range.last;
  });
}

// Controls, marks without width, changes of direction, private characters.
bool is_unsafe(char32_t code) {
  static const std::vector<Range> kUnsafe = {
      {0, 0x1F},          {0x7F, 0x9F},       {0xAD, 0xAD},     {0x300, 0x36F},   {0x483, 0x489},
      {0x591, 0x61C},     {0x64B, 0x65F},     {0x1160, 0x11FF}, {0x180B, 0x180F}, {0x1AB0, 0x1AFF},
      {0x1DC0, 0x1DFF},   {0x200B, 0x200F},   {0x2028, 0x202E}, {0x2060, 0x206F}, {0x20D0, 0x20FF},
      {0xE000, 0xF8FF},   {0xFE00, 0xFE0F},   {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xFFF0, 0xFFFB},
      {0xE0000, 0xE0FFF}, {0xF0000, 0x10FFFF}};
  return is_in(code, kUnsafe);
}

// As East Asian Width of Unicode (UAX 11) has them, in whole blocks.
bool is_wide(char32_t code) {
  static const std::vector<Range> kWide = {
      {0x1100, 0x115F}, {0x2E80, 0xA4CF}, {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},  {0xFE30, 0xFE6F},
      {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
  return is_in(code, kWide);
}

std::vector<Glyph> glyphs_of(std::string_view text, bool is_ascii) {
  std::vector<Glyph> glyphs;
  while (!text.empty()) {
    std::size_t length = 1;
    const char32_t code = decode(text, &length);
    CAIRN_CHECK(length >= 1 && length <= text.size());
    const bool is_shown = !is_unsafe(code) && !(is_ascii && code > 0x7E);
    glyphs.push_back(is_shown ? Glyph{std::string(text.substr(0, length)), is_wide(code) ? 2U : 1U}
                              : Glyph{"?", 1});
    text.remove_prefix(length);
  }
  return glyphs;
}

unsigned width_of(const std::vector<Glyph>& glyphs) {
  unsigned columns = 0;
  for (const Glyph& glyph : glyphs) columns += glyph.columns;
  return columns;
}

std::string joined(const std::vector<Glyph>& glyphs) {
  std::string text;
  for (const Glyph& glyph : glyphs) text += glyph.bytes;
  return text;
}

}  // namespace

unsigned columns_of(std::string_view safe_text) { return width_of(glyphs_of(safe_text, false)); }

std::string fit(std::string_view text, unsigned columns, bool is_ascii, bool keeps_end) {
  std::vector<Glyph> glyphs = glyphs_of(text, is_ascii);
  if (width_of(glyphs) <= columns) return joined(glyphs);
  if (columns == 0) return {};
  if (keeps_end) std::reverse(glyphs.begin(), glyphs.end());
  std::vector<Glyph> kept;
  unsigned used = 1;  // of the mark
  for (const Glyph& glyph : glyphs) {
    used += glyph.columns;
    if (used > columns) break;
    kept.push_back(glyph);
  }
  kept.push_back({"~", 1});
  if (keeps_end) std::reverse(kept.begin(), kept.end());
  CAIRN_CHECK(width_of(kept) <= columns);
  return joined(kept);
}

std::string padded(std::string_view text, unsigned columns, bool is_ascii) {
  std::string result = fit(text, columns, is_ascii);
  result.append(columns - columns_of(result), ' ');
  return result;
}

std::string bar(std::uint64_t dirty, std::uint64_t used, std::uint64_t capacity, unsigned columns) {
  // One byte is enough to be seen.
  const auto cells = [capacity, columns](std::uint64_t part) {
    if (capacity == 0 || part == 0) return 0U;
    const double share = static_cast<double>(part) / static_cast<double>(capacity);
    return static_cast<unsigned>(std::ceil(std::min(1.0, share) * columns));
  };
  const unsigned full = cells(std::max(used, dirty));
  const unsigned dark = std::min(full, cells(dirty));
  CAIRN_CHECK(dark <= full && full <= columns);
  return std::string(dark, '#') + std::string(full - dark, '=') + std::string(columns - full, '.');
}

std::string sparkline(const std::deque<double>& values, unsigned columns, bool is_ascii) {
  static constexpr std::array<const char*, 9> kBlocks = {" ", "▁", "▂", "▃", "▄",
                                                         "▅", "▆", "▇", "█"};
  static constexpr std::array<const char*, 9> kLetters = {" ", ".", ":", "-", "=",
                                                          "+", "*", "%", "#"};
  const std::size_t shown = std::min<std::size_t>(columns, values.size());
  const auto begin = values.end() - static_cast<std::ptrdiff_t>(shown);
  const double most = shown == 0 ? 0 : *std::max_element(begin, values.end());
  std::string text;
  for (auto value = begin; value != values.end(); ++value) {
    const double share = most > 0 ? *value / most : 0;
    const auto level = static_cast<std::size_t>(std::ceil(std::clamp(share, 0.0, 1.0) * 8));
    CAIRN_CHECK(level < kBlocks.size());
    text += (is_ascii ? kLetters : kBlocks)[level];
  }
  return text;
}

}  // namespace cairn::cli
