// SPDX-License-Identifier: Apache-2.0
#include "service/fetching/demand.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace cairn::node {
namespace {

constexpr std::chrono::microseconds kLookAgain(100);
constexpr int kLooksMax = 200;

}  // namespace

bool wait_for_demand(const NodeMemory& memory, std::span<const std::uint16_t> slots,
                     std::span<const FileOfProcess> said) {
  const auto is_demanded = [&] {
    return std::any_of(slots.begin(), slots.end(), [&](std::uint16_t slot) {
      const EventRing& events = memory.events(slot);
      if (events.demands.load(std::memory_order_acquire) == 0) return false;
      const auto file = static_cast<ObjectIndex>(events.demanded.load(std::memory_order_relaxed));
      return std::find(said.begin(), said.end(), FileOfProcess{slot, file}) == said.end();
    });
  };
  int look = 0;
  for (; look < kLooksMax && is_demanded(); ++look) std::this_thread::sleep_for(kLookAgain);
  return look != 0;
}

}  // namespace cairn::node
