// SPDX-License-Identifier: Apache-2.0
#include "base/printable_text.h"

namespace cairn {

std::string printable(std::string_view text) {
  std::string clean;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    clean += byte < 0x20 || byte == 0x7F ? '?' : letter;
  }
  return clean;
}

}  // namespace cairn
