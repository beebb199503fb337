// SPDX-License-Identifier: Apache-2.0
// What the flusher knows the node by: how much is dirty, and the bell that wakes it.
//
//   word         written by                                    read by
//   bell         clients ring, the flusher sleeps              both
//   dirty_bytes  each change of a block to dirty or clean      flusher, organizer, drain, status
//                (memory/catalog/dirty_blocks.h)
//
// `dirty_bytes` is an estimate: a death between the count and the change of the block leaves it too
// high, never too low. The audit corrects it when nobody is at work.
//
// Thread safety: atomics. Ownership: lives in the control segment.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/arena/bell.h"

namespace cairn {

struct alignas(64) FlusherBoard {
  Bell bell;
  alignas(64) std::atomic<std::uint64_t> dirty_bytes;  // of buckets, all tiers
};
static_assert(sizeof(FlusherBoard) == 2 * 64, "counting dirty bytes does not disturb the bell");

}  // namespace cairn
