// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/page_hash.h"

#include "base/ids.h"

#define XXH_INLINE_ALL  // NOLINT(readability-identifier-naming): the library's name for it
#include <xxhash.h>

namespace cairn {

std::uint64_t page_hash(const void* page) { return XXH3_64bits(page, kPageBytes); }

}  // namespace cairn
