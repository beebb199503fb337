// SPDX-License-Identifier: Apache-2.0
#include "service/control/reservation_wait.h"

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/size_text.h"

namespace cairn::node {

Status wait_for_reservations(const NodeMemory& memory, const AccountRegistry& accounts,
                             const ControlPeer& peer, std::uint32_t run) {
  constexpr std::int64_t kPatienceNanos = 10'000'000'000;
  constexpr auto kPause = std::chrono::milliseconds(2);
  std::uint64_t least = UINT64_MAX;
  std::int64_t since = monotonic_ns();
  while (const std::uint64_t missing = accounts.missing_slabs(run)) {
    if (missing < least) {
      least = missing;
      since = monotonic_ns();
    }
    if (monotonic_ns() - since > kPatienceNanos || peer.is_gone()) {
      return Status(StatusCode::kExhausted,
                    format_size(missing * kBlockBytes) +
                        " of what is to be reserved cannot be freed: it is pinned, or the backing "
                        "store does not take it");
    }
    memory.organizer_board().bell.ring();
    std::this_thread::sleep_for(kPause);
  }
  return Status::ok();
}

}  // namespace cairn::node
