// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/words.h"

#include <cctype>
#include <string_view>

namespace cairn::cli {

bool is_plain_word(const std::vector<std::string>& words, size_t index) {
  if (index >= words.size() || words[index].empty()) return false;
  const char first = words[index].front();
  return std::isalnum(static_cast<unsigned char>(first)) != 0 ||
         std::string_view("/._~*").find(first) != std::string_view::npos;
}

}  // namespace cairn::cli
