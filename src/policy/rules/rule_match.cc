// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/rule_match.h"

#include <fnmatch.h>

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace cairn {
namespace {

constexpr std::string_view kMark = "{n}";
// A 64-bit number holds so many digits, whatever they are.
constexpr std::size_t kDigitsMax = 19;
static_assert(kDigitsMax == std::numeric_limits<std::uint64_t>::digits10);

// A mark after an odd number of backslashes is its own letters to fnmatch().
std::size_t find_mark(std::string_view pattern, std::size_t from) {
  for (std::size_t at = pattern.find(kMark, from); at != std::string_view::npos;
       at = pattern.find(kMark, at + 1)) {
    std::size_t backslashes = 0;
    while (backslashes < at && pattern[at - 1 - backslashes] == '\\') ++backslashes;
    if (backslashes % 2 == 0) return at;
  }
  return std::string_view::npos;
}

bool matches_glob(const std::string& pattern, const std::string& text) {
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// The digits that the mark stands for; the length is 0 when the text does not match.
struct Digits {
  std::size_t begin = 0;
  std::size_t length = 0;
};

// Without flags, fnmatch() knows no context: a pattern matches a text exactly when its halves match
// the halves of the text.
Digits find_digits(const std::string& pattern, std::size_t mark, const std::string& text) {
  CAIRN_DCHECK(pattern.compare(mark, kMark.size(), kMark) == 0);
  const std::string head = pattern.substr(0, mark);
  const std::string tail = pattern.substr(mark + kMark.size());
  const auto is_digit = [&text](std::size_t at) { return text[at] >= '0' && text[at] <= '9'; };
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    if (!is_digit(begin) || !matches_glob(head, text.substr(0, begin))) continue;
    std::size_t end = begin;
    while (end < text.size() && end - begin < kDigitsMax && is_digit(end)) ++end;
    for (; end > begin; --end) {
      if (matches_glob(tail, text.substr(end))) return {begin, end - begin};
    }
  }
  return {};
}

// The texts of a file that a pattern is held against, in this order.
std::array<std::optional<std::string>, 3> candidates(const std::string& pattern,
                                                     const FileFacts& file) {
  std::array<std::optional<std::string>, 3> texts;
  texts[0] = file.path;
  const std::size_t length = file.directory.size();
  const bool is_below = !file.directory.empty() && file.path.size() > length &&
                        file.path.compare(0, length, file.directory) == 0 &&
                        file.path[length] == '/';
  if (is_below) texts[1] = file.path.substr(length + 1);
  const std::size_t slash = file.path.rfind('/');
  const bool by_name = pattern.find('/') == std::string::npos && slash != std::string::npos;
  if (by_name) texts[2] = file.path.substr(slash + 1);
  return texts;
}

bool path_matches(const std::string& pattern, const FileFacts& file) {
  const auto texts = candidates(pattern, file);
  return std::any_of(texts.begin(), texts.end(),
                     [&pattern](const auto& text) { return text && glob_matches(pattern, *text); });
}

}  // namespace

unsigned count_generation_marks(std::string_view pattern) {
  unsigned count = 0;
  for (std::size_t at = find_mark(pattern, 0); at != std::string_view::npos;
       at = find_mark(pattern, at + kMark.size())) {
    ++count;
  }
  return count;
}

bool glob_matches(const std::string& pattern, const std::string& text) {
  const std::size_t mark = find_mark(pattern, 0);
  if (mark == std::string::npos) return matches_glob(pattern, text);
  return find_digits(pattern, mark, text).length > 0;
}

bool rule_matches(const FileRule& rule, const FileFacts& file) {
  if (file.size < rule.size_min || file.size > rule.size_max) return false;
  if (rule.access != RuleAccess::kAny && rule.access != file.access) return false;
  if (rule.speaks_of_part()) {
    const bool inside =
        file.offset && *file.offset >= rule.offset_begin && *file.offset < rule.offset_end;
    if (!inside) return false;
  }
  return path_matches(rule.pattern, file);
}

std::optional<std::uint64_t> generation_of(const FileRule& rule, const FileFacts& file) {
  const std::size_t mark = find_mark(rule.pattern, 0);
  if (mark == std::string::npos) return std::nullopt;
  for (const auto& text : candidates(rule.pattern, file)) {
    if (!text) continue;
    const Digits digits = find_digits(rule.pattern, mark, *text);
    if (digits.length == 0) continue;
    CAIRN_CHECK(digits.length <= kDigitsMax && digits.begin + digits.length <= text->size());
    std::uint64_t generation = 0;
    for (std::size_t at = digits.begin; at < digits.begin + digits.length; ++at) {
      generation = generation * 10 + static_cast<std::uint64_t>((*text)[at] - '0');
    }
    return generation;
  }
  return std::nullopt;
}

EffectiveHandling effective_handling(std::span<const FileRule> rules, const FileFacts& file) {
  EffectiveHandling handling;
  for (const FileRule& rule : rules) {
    if (!rule_matches(rule, file)) continue;
    for (unsigned index = 0; index < kRuleProperties; ++index) {
      const auto property = static_cast<RuleProperty>(index);
      if (handling.decided_by[index] != nullptr || !property_text(rule, property)) continue;
      copy_property(rule, property, &handling.properties);
      handling.decided_by[index] = &rule;
    }
  }
  return handling;
}

}  // namespace cairn
