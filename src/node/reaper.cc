// SPDX-License-Identifier: Apache-2.0
#include "node/reaper.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace cairn::node {
namespace {

// A slot's generation has 8 bits, and slots are used in turn: after so many rounds of all slots every lock that still names
// a dead owner is released, long before its name can come alive again.
constexpr std::uint32_t kRoundsPerFullSweep = 64;

// Sweeps take a tenth of one core at most: deaths that come meanwhile are served together by the next.
constexpr std::int64_t kPauseFactor = 9;
constexpr std::int64_t kPauseNanosMax = 200'000'000;

}  // namespace

Reaper::Reaper(const NodeMemory& memory, ClientTable& clients,
               std::function<void(const SweepCounts&)> after_sweep)
    : memory_(memory), clients_(clients), after_sweep_(std::move(after_sweep)) {
  actor_.memory = &memory_;
  actor_.self = clients_.service();
  actor_.counters = &memory_.slot(ClientTable::kServiceSlot).shards[1];
}

Reaper::~Reaper() { stop(); }

void Reaper::start() {
  thread_ = std::thread([this] { run(); });
}

void Reaper::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Reaper::departed(Owner dead, AttachEvents::Departure how) {
  {
    const std::lock_guard lock(mutex_);
    (how == AttachEvents::Departure::kDied ? pending_.dead : pending_.replaced).push_back(dead);
  }
  changed_.notify_all();
}

void Reaper::inherited(Owner old) {
  {
    const std::lock_guard lock(mutex_);
    pending_.inherited.push_back(old);
  }
  changed_.notify_all();
}

bool Reaper::wait_until_idle(int timeout_ms) {
  std::unique_lock lock(mutex_);
  ++waiting_;
  changed_.notify_all();
  const bool idle = changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] {
    return stopping_ || (pending_.is_empty() && !busy_);
  });
  --waiting_;
  return idle;
}

void Reaper::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto has_work = [this] { return stopping_ || !pending_.is_empty(); };
    if (transit_.empty()) {
      changed_.wait(lock, has_work);
    } else {
      const std::int64_t wait_ns = std::max<std::int64_t>(transit_.front().release_at_ns - monotonic_ns(), 1'000'000);
      changed_.wait_for(lock, std::chrono::nanoseconds(wait_ns), has_work);
    }
    if (stopping_) return;
    busy_ = true;
    const Batch batch = std::exchange(pending_, {});
    lock.unlock();
    const std::int64_t began = monotonic_ns();
    if (!batch.is_empty()) sweep(batch);
    release_expired();
    const std::chrono::nanoseconds pause(std::min(kPauseFactor * (monotonic_ns() - began), kPauseNanosMax));
    lock.lock();
    busy_ = false;
    changed_.notify_all();
    changed_.wait_for(lock, pause, [this] { return stopping_ || waiting_ != 0; });
  }
}

void Reaper::sweep(const Batch& batch) {
  SweepCounts counts;
  if (!batch.dead.empty() || !batch.replaced.empty()) counts = sweep_buckets(actor_);
  for (const Owner dead : batch.dead) release_holds(dead);
  for (const Owner old : batch.inherited) release_holds(old);
  after_sweep_(counts);
}

void Reaper::release_holds(Owner dead) {
  std::vector<TransitHold> in_transit;
  sweep_holds(actor_, dead, &in_transit);
  if (in_transit.empty()) {
    release_slot(dead);
    return;
  }
  const std::int64_t release_at = monotonic_ns() + kTransitGraceNanos;
  for (const TransitHold& hold : in_transit) transit_.push_back(Transit{hold, release_at});
}

void Reaper::release_expired() {
  const std::int64_t now = monotonic_ns();
  while (!transit_.empty() && transit_.front().release_at_ns <= now) {
    const Owner owner = transit_.front().hold.owner;
    release_transit(actor_, transit_.front().hold);
    transit_.erase(transit_.begin());
    const bool last = std::none_of(transit_.begin(), transit_.end(),
                                   [owner](const Transit& other) { return other.hold.owner == owner; });
    if (last) release_slot(owner);
  }
}

void Reaper::release_slot(Owner dead) {
  if (++released_since_full_sweep_ >= kRoundsPerFullSweep * memory_.slot_count()) {
    sweep_locks(actor_);
    released_since_full_sweep_ = 0;
  }
  clients_.release(dead.slot());
}

}  // namespace cairn::node
