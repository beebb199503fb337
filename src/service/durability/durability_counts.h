// SPDX-License-Identifier: Apache-2.0
// How often what happened to the files that programs want durable, for `cairn status`.
//
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace cairn::node {

struct DurabilityCounts {
  std::atomic<std::uint64_t> logged{0};         // asked for, and the log has it
  std::atomic<std::uint64_t> stored{0};         // the store has it: the log could not
  std::atomic<std::uint64_t> stored_full{0};    // of them: because the log was full
  std::atomic<std::uint64_t> stored_failed{0};  // because it was out of order
  std::atomic<std::uint64_t> rounds{0};         // commits, each for all who waited
  std::atomic<std::uint64_t> retired{0};        // files that were stored to free the log
  std::atomic<std::uint64_t> checkpoints{0};
  std::atomic<std::int64_t> checkpoint_ns{0};        // monotonic, when the last one began
  std::atomic<std::int64_t> checkpoint_took_ns{0};   // the last one
  std::atomic<std::uint64_t> checkpoint_bytes{0};    // logged by all of them
  std::atomic<std::uint64_t> checkpoint_skipped{0};  // files that the log had no room for
  std::atomic<std::uint64_t> checkpoint_stored{0};   // files that only the store could have
};

}  // namespace cairn::node
