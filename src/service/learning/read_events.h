// SPDX-License-Identifier: Apache-2.0
// The blocks that reads touch, for the followers of streams.
//
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/ids.h"
#include "memory/arena/event_ring.h"
#include "policy/prefetch/predictor.h"

namespace cairn::node {

// Reads of a stream that are compared with the beginnings of declared orders: a header may come
// before the first item.
inline constexpr unsigned kFirstReads = 4;

constexpr bool is_read(AccessKind kind) {
  return kind >= AccessKind::kMiss && kind <= AccessKind::kHit;
}

static_assert(is_read(AccessKind::kMiss) && is_read(AccessKind::kHit));
static_assert(!is_read(AccessKind::kOpen) && !is_read(AccessKind::kClose));
static_assert(!is_read(AccessKind::kWrite) && !is_read(AccessKind::kAdvice));

// The blocks that are touched, also in part.
constexpr BlockRun run_of_bytes(std::uint64_t offset, std::uint64_t length) {
  const auto first = static_cast<std::int64_t>(offset / kBlockBytes);
  const std::uint64_t end = offset + std::max<std::uint64_t>(length, 1);
  const auto past = static_cast<std::int64_t>((end + kBlockBytes - 1) / kBlockBytes);
  return BlockRun{first, static_cast<std::uint32_t>(past - first)};
}

static_assert(run_of_bytes(0, 0).count == 1, "an empty access touches its block");
static_assert(run_of_bytes(kBlockBytes - 1, 2).count == 2);
static_assert(run_of_bytes(kBlockBytes, kBlockBytes) == BlockRun{1, 1});

constexpr BlockRun run_of(const AccessEvent& event) {
  return run_of_bytes(event.offset, event.length);
}

}  // namespace cairn::node
