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

void wait_for_demand(const NodeMemory& memory, std::span<const std::uint16_t> slots) {
  const auto is_demanded = [&] {
    return std::any_of(slots.begin(), slots.end(), [&](std::uint16_t slot) {
      return memory.events(slot).demands.load(std::memory_order_relaxed) != 0;
    });
  };
  for (int look = 0; look < kLooksMax && is_demanded(); ++look)
    std::this_thread::sleep_for(kLookAgain);
}

}  // namespace cairn::node
