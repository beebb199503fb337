// SPDX-License-Identifier: Apache-2.0
// How the services of a node, its keepers and its rescues have ended so far. The keeper writes it
// while no service runs, but for what is said below; `cairn status` shows it.
//
// Thread safety: any thread; each word by itself. Ownership: lies in kept memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace cairn::node {

// What a rescue is doing: the next one goes around what this one has died of.
enum class RescueStep : std::uint32_t { kNone, kTakeover, kStore, kSave };

struct KeptLife {
  static constexpr unsigned kDeathsMax = 16;

  std::atomic<std::uint32_t> restarts;    // 0: the first service is at work
  std::atomic<std::int32_t> last_signal;  // that killed the one before; 0: nobody knows which
  std::atomic<std::int64_t> last_end_ns;  // monotonic
  std::atomic<std::int64_t> death_ns[kDeathsMax];  // monotonic, of the last ones; 0: none
  // The service, or the rescue: 1 + its exit status once it has done all it had to do, and takes
  // itself apart: what kills it then leaves nothing to take over. 0: it has not.
  std::atomic<std::int32_t> done;
  // The service: keepers that it has started because the one before was gone.
  std::atomic<std::uint32_t> new_keepers;
  // The rescue, one at a time.
  std::atomic<std::uint32_t> rescues;  // begun
  std::atomic<RescueStep> rescue_step;
  std::atomic<std::uint32_t> rescue_object;  // that it is storing or saving
};

}  // namespace cairn::node
