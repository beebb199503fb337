// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/actor.h"

#include <sys/mman.h>

#include "base/check.h"
#include "base/system_call.h"

namespace cairn {

std::byte* Actor::bounce_blocks() {
  copy.count = 0;
  if (bounce == nullptr) {
    void* mapped = sys::mmap(nullptr, kBounceBlocks * kBlockBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!sys::is_error(mapped)) bounce = static_cast<std::byte*>(mapped);
    CAIRN_DCHECK(reinterpret_cast<std::uintptr_t>(bounce) % kPageBytes == 0);
  }
  return bounce;
}

void Actor::drop_leases() {
  CAIRN_DCHECK(memory != nullptr);
  for (unsigned tier = 0; tier < memory->tier_count(); ++tier) {
    leases[tier].drop(memory->pool(static_cast<TierId>(tier)));
  }
  if (bounce != nullptr) sys::munmap(bounce, kBounceBlocks * kBlockBytes);
  bounce = nullptr;
  copy = {};
}

}  // namespace cairn
