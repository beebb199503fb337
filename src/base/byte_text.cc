// SPDX-License-Identifier: Apache-2.0
#include "base/byte_text.h"

#include <cstddef>

#include "base/check.h"

namespace cairn {
namespace {

constexpr std::string_view kByteDigits = "0123456789abcdef";

bool is_between(unsigned char byte, unsigned low, unsigned high) {
  return byte >= low && byte <= high;
}

// The length of the character of UTF-8 that `bytes` begins with (RFC 3629, section 4); 0: none.
std::size_t character_length(std::string_view bytes) {
  CAIRN_DCHECK(!bytes.empty());
  const auto at = [bytes](std::size_t index) { return static_cast<unsigned char>(bytes[index]); };
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  unsigned low = 0x80;
  unsigned high = 0xbf;
  if (is_between(first, 0xc2, 0xdf)) {
    length = 2;
  } else if (is_between(first, 0xe0, 0xef)) {
    length = 3;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
  } else if (is_between(first, 0xf0, 0xf4)) {
    length = 4;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
  }
  if (length == 0 || bytes.size() < length || !is_between(at(1), low, high)) return 0;
  for (std::size_t index = 2; index < length; ++index) {
    if (!is_between(at(index), 0x80, 0xbf)) return 0;
  }
  return length;
}

}  // namespace

std::string text_of_bytes(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = character_length(bytes);
    if (length != 0) {
      text.append(bytes.substr(0, length));
    } else {
      const auto byte = static_cast<unsigned char>(bytes.front());
      text.append({'\0', kByteDigits[byte >> 4], kByteDigits[byte & 15]});
    }
    bytes.remove_prefix(length != 0 ? length : 1);
  }
  return text;
}

std::string bytes_of_text(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool is_escape = text[at] == '\0' && at + 2 < text.size();
    const std::size_t high = is_escape ? kByteDigits.find(text[at + 1]) : std::string_view::npos;
    const std::size_t low = is_escape ? kByteDigits.find(text[at + 2]) : std::string_view::npos;
    if (high == std::string_view::npos || low == std::string_view::npos) {
      bytes.push_back(text[at]);
    } else {
      bytes.push_back(static_cast<char>(high << 4 | low));
      at += 2;
    }
  }
  return bytes;
}

}  // namespace cairn
