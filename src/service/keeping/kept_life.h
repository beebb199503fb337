// SPDX-License-Identifier: Apache-2.0
// How the services of a node have ended so far. The keeper writes it, while no service runs, but
// for the end that the last service notes; `cairn status` shows it.
//
// Thread safety: any thread; each word by itself. Ownership: lies in kept memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace cairn::node {

struct KeptLife {
  std::atomic<std::uint32_t> restarts;    // 0: the first service is at work
  std::atomic<std::int32_t> last_signal;  // that killed the one before
  std::atomic<std::int64_t> last_end_ns;  // monotonic
  // 1 + the exit status of a service that has done all it had to do, and takes itself apart: what
  // kills it then leaves nothing to take over. 0: none has.
  std::atomic<std::int32_t> done;
};

}  // namespace cairn::node
