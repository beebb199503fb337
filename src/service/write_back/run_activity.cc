// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/run_activity.h"

namespace cairn::node {

void RunActivity::look() {
  std::map<std::uint32_t, std::uint64_t> calls;
  for (std::uint32_t index = 0; index < memory_.slot_count(); ++index) {
    const ClientSlot& slot = memory_.slot(static_cast<std::uint16_t>(index));
    if (slot.state.load(std::memory_order_acquire) == SlotState::kFree) continue;
    std::uint64_t& sum = calls[slot.run.load(std::memory_order_relaxed)];
    for (const CounterShard& shard : slot.shards)
      sum +=
          shard.get(Counter::kReadHits) + shard.get(Counter::kReads) + shard.get(Counter::kWrites);
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(phases_, [&](const auto& entry) { return !calls.contains(entry.first); });
  for (const auto& [run, sum] : calls) {
    Phase& phase = phases_[run];
    // A client that has left takes its count with it: that is no call.
    phase.in_io = sum > phase.calls;
    phase.calls = sum;
  }
}

bool RunActivity::is_in_io(std::uint32_t run) const {
  const std::lock_guard lock(mutex_);
  const auto found = phases_.find(run);
  return found != phases_.end() && found->second.in_io;
}

}  // namespace cairn::node
