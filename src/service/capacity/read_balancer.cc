// SPDX-License-Identifier: Apache-2.0
#include "service/capacity/read_balancer.h"

#include <algorithm>

#include "base/clock.h"

namespace cairn::node {
namespace {

constexpr std::int64_t kStepNanos = 100'000'000;
// After so long without a look, what was read says nothing about how fast.
constexpr std::int64_t kStaleNanos = 5 * kStepNanos;

}  // namespace

void ReadBalancer::on_accesses(std::span<const ToldAccess> batch) {
  const bool is_concerned = std::any_of(batch.begin(), batch.end(), [](const ToldAccess& told) {
    return told.event.kind == AccessKind::kBelow;
  });
  const std::int64_t now = monotonic_ns();
  if (!is_concerned || now - looked_ns_ < kStepNanos) return;
  const std::int64_t passed = now - looked_ns_;
  looked_ns_ = now;
  step(passed < kStaleNanos ? static_cast<double>(passed) / 1e9 : 0);
}

// `seconds`: since the last step; 0: too many.
void ReadBalancer::step(double seconds) {
  const CounterSums sums = clients_.totals();
  const auto since = [&](Counter counter) {
    const auto at = static_cast<std::size_t>(counter);
    return static_cast<double>(sums[at] - std::min(sums[at], before_[at]));
  };
  // What went around them is not counted for each: it is shared out as it was meant to be.
  double meant = 0;
  std::array<double, kTiersMax> part{};
  for (unsigned tier = 1; tier < memory_.tier_count(); ++tier) {
    const std::uint32_t share =
        memory_.device_board().read_around[tier].load(std::memory_order_relaxed);
    part[tier] = share * since(hit_bytes_counter(static_cast<TierId>(tier)));
    meant += part[tier];
  }
  const double around = since(Counter::kAroundBytes);
  for (unsigned tier = 1; tier < memory_.tier_count(); ++tier) {
    std::uint32_t share = 0;
    if (seconds > 0) {
      const double own = since(hit_bytes_counter(static_cast<TierId>(tier))) / seconds;
      const double past = meant > 0 ? around * part[tier] / meant / seconds : 0;
      share = balances_[tier].step(own, past, bandwidth_of_(tier));
    }
    memory_.device_board().read_around[tier].store(share, std::memory_order_relaxed);
  }
  before_ = sums;
}

}  // namespace cairn::node
