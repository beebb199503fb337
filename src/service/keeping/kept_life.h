// SPDX-License-Identifier: Apache-2.0
// How often the service of a node was started anew, and how the last one ended: a piece of kept
// memory that the keeper writes and `cairn status` shows.
//
// Thread safety: written by the keeper alone, while no service runs; read by any thread.
// Ownership: plain values in kept memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace cairn::node {

struct KeptLife {
  std::atomic<std::uint32_t> restarts;
  std::atomic<std::int32_t> last_signal;  // that killed the last service; 0: none did
  std::atomic<std::int32_t> last_status;  // its exit status, where no signal killed it
  std::atomic<std::int64_t> last_end_ns;  // monotonic
};

}  // namespace cairn::node
