// SPDX-License-Identifier: Apache-2.0
// Compiled with AVX2 (cmake/modules.cmake): nothing that another file may use as well belongs here.
#include "memory/tiers/page_hash.h"

#if defined(__x86_64__)
#define XXH_INLINE_ALL  // NOLINT(readability-identifier-naming): the library's name for it
#include <xxhash.h>

namespace cairn {

std::uint64_t page_hash_avx2(const void* page) {
  constexpr unsigned kBytes = 4096;  // kPageBytes: base/ids.h has functions that others use
  return XXH3_64bits(page, kBytes);
}

}  // namespace cairn
#endif
