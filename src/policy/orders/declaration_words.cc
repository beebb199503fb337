// SPDX-License-Identifier: Apache-2.0
#include "policy/orders/declaration_words.h"

namespace cairn {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view take_word(std::string_view* text) {
  bool is_inside = false;
  std::size_t end = 0;
  for (; end < text->size(); ++end) {
    if ((*text)[end] == '"') is_inside = !is_inside;
    if (!is_inside && kBlanks.find((*text)[end]) != kBlanks.npos) break;
  }
  const std::string_view word = text->substr(0, end);
  text->remove_prefix(end);
  return word;
}

// Takes the quotes off a text that begins and ends with one. Returns: false when one is elsewhere.
bool unquote(std::string_view* text) {
  if (text->size() >= 2 && text->front() == '"' && text->back() == '"') {
    *text = text->substr(1, text->size() - 2);
  }
  return text->find('"') == text->npos;
}

}  // namespace

Result<std::vector<DeclarationWord>> declaration_words(std::string_view text) {
  std::vector<DeclarationWord> words;
  while (true) {
    const std::size_t begin = text.find_first_not_of(kBlanks);
    if (begin == text.npos) return words;
    text.remove_prefix(begin);
    const std::string_view word = take_word(&text);
    std::string_view name = word;
    std::string_view value;
    const bool is_quoted = word.front() == '"';
    const std::size_t equals = is_quoted ? word.npos : word.find('=');
    if (equals != word.npos) {
      name = word.substr(0, equals);
      value = word.substr(equals + 1);
    }
    if (!unquote(is_quoted ? &name : &value) || name.find('"') != name.npos) {
      return Status(StatusCode::kInvalid,
                    "order: in " + std::string(word) +
                        " a quotation mark is missing or in the middle; quote a whole value, such "
                        "as item-files=\"my list\"");
    }
    words.push_back({std::string(name), std::nullopt, is_quoted});
    if (equals != word.npos) words.back().value = std::string(value);
  }
}

}  // namespace cairn
