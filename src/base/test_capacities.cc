// SPDX-License-Identifier: Apache-2.0
#include "base/test_capacities.h"

#include <stdlib.h>

#include <algorithm>
#include <cstring>

namespace cairn {

std::uint32_t capacity_of(const char* table, std::uint32_t usual) {
  const std::size_t length = std::strlen(table);
  for (const char* entry = getenv(kTestCapacitiesVariable); entry != nullptr;) {
    if (std::strncmp(entry, table, length) == 0 && entry[length] == '=') {
      const unsigned long number = strtoul(entry + length + 1, nullptr, 10);
      return number == 0 ? usual
                         : static_cast<std::uint32_t>(std::min<unsigned long>(number, usual));
    }
    entry = std::strchr(entry, ',');
    if (entry != nullptr) ++entry;
  }
  return usual;
}

}  // namespace cairn
