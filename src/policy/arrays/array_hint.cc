// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/array_hint.h"

#include <charconv>
#include <optional>
#include <string_view>

namespace cairn::arrays {
namespace {

constexpr std::string_view kForm = "write FILE:/DATASET chunk=[N,...] ghost=[N,...]";

Status wrong(const std::string& what) {
  return {StatusCode::kInvalid, what + "; " + std::string(kForm)};
}

// "[8,16]"; none for anything else.
std::optional<Coordinates> numbers_of(std::string_view text) {
  if (text.size() < 3 || text.front() != '[' || text.back() != ']') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  Coordinates numbers(kDimensionsMax, 0);
  std::size_t count = 0;
  for (;;) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || count == kDimensionsMax) return std::nullopt;
    numbers[count++] = number;
    const auto taken = static_cast<std::size_t>(end - text.data());
    if (taken == text.size()) break;
    if (text[taken] != ',') return std::nullopt;
    text.remove_prefix(taken + 1);
  }
  return Coordinates(numbers.all().first(count));
}

// The word behind the last blank, which is taken away with the blanks before it.
std::string_view take_last_word(std::string_view* text) {
  while (!text->empty() && text->back() == ' ') text->remove_suffix(1);
  const std::size_t blank = text->rfind(' ');
  const std::size_t begin = blank == std::string_view::npos ? 0 : blank + 1;
  const std::string_view word = text->substr(begin);
  text->remove_suffix(word.size());
  while (!text->empty() && text->back() == ' ') text->remove_suffix(1);
  return word;
}

// Looks at the last list, which begins with the last "=[".
bool has_blank_in_list(std::string_view text) {
  const std::size_t begin = text.rfind("=[");
  const std::size_t end = text.find_first_of(" ]", begin == std::string_view::npos ? 0 : begin);
  return begin != std::string_view::npos && end != std::string_view::npos && text[end] == ' ';
}

// The text ends with a word of the kind `name=[...`, which is none of ours, or with some word
// behind one of ours.
bool ends_with_unknown(std::string_view text, std::string_view last) {
  const std::size_t dataset = text.rfind(":/");
  if (dataset != std::string_view::npos && text.find(" chunk=", dataset) != std::string_view::npos)
    return true;
  const std::size_t sign = last.find("=[");
  return sign != std::string_view::npos && sign != 0 && last.find('/') == std::string_view::npos;
}

std::string list_of(const Coordinates& numbers) {
  std::string text;
  for (const std::uint64_t number : numbers.all())
    text += (text.empty() ? "" : ",") + std::to_string(number);
  return "[" + text + "]";
}

}  // namespace

std::string text_of(const ArrayHint& hint) {
  return hint.file + ":" + hint.dataset + " chunk=" + list_of(hint.chunk) +
         " ghost=" + list_of(hint.ghost);
}

ChunkShape ArrayHint::shape() const {
  ChunkShape shape = ChunkShape::plain(chunk);
  shape.ghost = GhostWidth::around(ghost);
  return shape;
}

Status ArrayHint::check() const {
  if (ghost.size() != chunk.size()) {
    return {StatusCode::kInvalid, "chunk has " + std::to_string(chunk.size()) +
                                      " numbers and ghost has " + std::to_string(ghost.size()) +
                                      ": give one for each dimension"};
  }
  return ChunkGrid::of(chunk, shape()).status();
}

Result<ArrayHint> parse_array_hint(const std::string& text) {
  if (text.size() > ArrayHint::kTextMax)
    return wrong("it is longer than " + std::to_string(ArrayHint::kTextMax) + " bytes");
  ArrayHint hint;
  hint.text = text;
  std::string_view rest = text;
  for (;;) {
    std::string_view before = rest;
    const std::string_view word = take_last_word(&before);
    const bool is_chunk = word.starts_with("chunk=");
    if (!is_chunk && !word.starts_with("ghost=")) break;
    const auto numbers = numbers_of(word.substr(word.find('=') + 1));
    if (!numbers) {
      return wrong("\"" + std::string(word) + "\" has no list of up to " +
                   std::to_string(kDimensionsMax) + " numbers");
    }
    Coordinates& place = is_chunk ? hint.chunk : hint.ghost;
    if (place.size() != 0) return wrong("\"" + std::string(word) + "\" is there twice");
    place = *numbers;
    rest = before;
  }
  if (hint.chunk.size() == 0 && has_blank_in_list(rest)) return wrong("a list has no blanks");
  std::string_view before = rest;
  if (const std::string_view last = take_last_word(&before); ends_with_unknown(rest, last))
    return wrong("\"" + std::string(last) + "\" is neither \"chunk=[...]\" nor \"ghost=[...]\"");
  if (hint.chunk.size() == 0) return wrong("there is no \"chunk=\"");
  const std::size_t colon = rest.rfind(":/");
  if (colon == std::string_view::npos || colon == 0) return wrong("no file and dataset are named");
  hint.file = rest.substr(0, colon);
  hint.dataset = rest.substr(colon + 1);
  if (hint.ghost.size() == 0) hint.ghost = Coordinates(hint.chunk.size(), 0);
  return hint;
}

}  // namespace cairn::arrays
