// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/reaper.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/clock.h"

namespace cairn::node {
namespace {

// A slot's generation has 8 bits, and slots are used in turn: after so many rounds of all slots
// every lock that still names a dead owner is released, long before its name can come alive again.
constexpr std::uint32_t kRoundsPerFullSweep = 64;

// Sweeps take a tenth of one core at most: deaths that come meanwhile are served together by the
// next.
constexpr std::int64_t kPauseFactor = 9;
constexpr std::int64_t kPauseNanosMax = 200'000'000;
constexpr std::int64_t kAuditPauseNanosMin = 20'000'000;
constexpr std::int64_t kAuditPauseNanosMax = 10'000'000'000;

}  // namespace

Reaper::Reaper(const NodeMemory& memory, ClientTable& clients, Audit& audit,
               std::function<void(const SweepCounts&)> after_sweep)
    : memory_(memory), clients_(clients), audit_(audit), after_sweep_(std::move(after_sweep)) {
  actor_.memory = &memory_;
  actor_.self = clients_.service();
  actor_.counters = &memory_.slot(ClientTable::kServiceSlot).shards[1];
}

Reaper::~Reaper() { stop(); }

void Reaper::start() {
  CAIRN_CHECK(!thread_.joinable());
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

void Reaper::look_again() {
  {
    const std::lock_guard lock(mutex_);
    pending_.is_look = true;
  }
  changed_.notify_all();
}

void Reaper::owe_audit() {
  {
    const std::lock_guard lock(mutex_);
    audit_owed_ = true;
    audit_pause_ns_ = kAuditPauseNanosMin;
  }
  look_again();
}

bool Reaper::wait_until_idle(int timeout_ms) {
  std::unique_lock lock(mutex_);
  const auto is_idle = [this] { return stopping_ || (pending_.is_empty() && !busy_); };
  // The usual case at the end of a run: the reaper's thread sleeps on.
  if (is_idle()) return true;
  ++waiting_;
  changed_.notify_all();
  const bool idle = changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), is_idle);
  --waiting_;
  return idle;
}

void Reaper::wait_for_work(std::unique_lock<std::mutex>& lock) {
  const auto has_work = [this] { return stopping_ || !pending_.is_empty(); };
  std::int64_t wait_ns = INT64_MAX;
  if (!transit_.empty()) wait_ns = transit_.front().release_at_ns - monotonic_ns();
  if (audit_owed_ && is_nobody_at_work()) wait_ns = std::min(wait_ns, audit_pause_ns_);
  if (wait_ns == INT64_MAX) {
    changed_.wait(lock, has_work);
  } else {
    changed_.wait_for(lock, std::chrono::nanoseconds(std::max<std::int64_t>(wait_ns, 1'000'000)),
                      has_work);
  }
}

void Reaper::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    wait_for_work(lock);
    if (stopping_) return;
    CAIRN_CHECK(!busy_);
    busy_ = true;
    const Batch batch = std::exchange(pending_, {});
    lock.unlock();
    const std::int64_t began = monotonic_ns();
    if (!batch.is_empty()) sweep(batch);
    release_expired();
    // wait_until_idle() does not wait for the audit, which concerns nobody alive.
    lock.lock();
    busy_ = false;
    changed_.notify_all();
    lock.unlock();
    audit();
    const std::chrono::nanoseconds pause(
        std::min(kPauseFactor * (monotonic_ns() - began), kPauseNanosMax));
    lock.lock();
    changed_.wait_for(lock, pause, [this] {
      return stopping_ || waiting_ != 0 || pending_.dead.size() > memory_.slot_count() / 8;
    });
  }
}

// Owed after deaths; possible when nobody is at work. While data is still dirty it is tried less
// and less often.
void Reaper::audit() {
  if (!audit_owed_ || !is_nobody_at_work()) return;
  if (audit_.run(actor_, replaced_) == Audit::Outcome::kDone) {
    audit_owed_ = false;
    after_sweep_(SweepCounts{});
  } else {
    audit_pause_ns_ = std::min(2 * audit_pause_ns_, kAuditPauseNanosMax);
  }
}

void Reaper::sweep(const Batch& batch) {
  // First: once the blocks of the dead are unlocked, others read what they had begun to write.
  if (!batch.dead.empty()) sweep_cut_writes(memory_, batch.dead);
  if (!batch.replaced.empty()) sweep_cut_writes(memory_, batch.replaced);
  SweepCounts counts;
  (void)memory_.requests().release_dead(memory_.owners());
  const auto has_worked = [this](Owner owner) { return clients_.has_worked(owner.slot()); };
  const bool may_have_died_at_work =
      std::any_of(batch.dead.begin(), batch.dead.end(), has_worked) ||
      std::any_of(batch.replaced.begin(), batch.replaced.end(), has_worked);
  if (may_have_died_at_work) {
    counts = sweep_buckets(actor_);
    (void)sweep_settlings(actor_);
    (void)sweep_cuts(actor_);
  }
  replaced_.insert(replaced_.end(), batch.replaced.begin(), batch.replaced.end());
  std::erase_if(replaced_, [&batch](Owner owner) {
    return std::find(batch.inherited.begin(), batch.inherited.end(), owner) !=
           batch.inherited.end();
  });
  std::vector<Owner> gone = batch.dead;
  gone.insert(gone.end(), batch.inherited.begin(), batch.inherited.end());
  if (!gone.empty()) release_holds(gone);
  if (may_have_died_at_work) {
    audit_owed_ = true;
    audit_pause_ns_ = kAuditPauseNanosMin;
  }
  after_sweep_(counts);
}

void Reaper::release_holds(const std::vector<Owner>& dead) {
  std::vector<TransitHold> in_transit;
  sweep_holds(actor_, dead, &in_transit);
  const std::int64_t release_at = monotonic_ns() + kTransitGraceNanos;
  for (const TransitHold& hold : in_transit) transit_.push_back(Transit{hold, release_at});
  for (const Owner owner : dead) {
    const bool waits =
        std::any_of(in_transit.begin(), in_transit.end(),
                    [owner](const TransitHold& hold) { return hold.owner == owner; });
    if (!waits) release_slot(owner);
  }
}

void Reaper::release_expired() {
  const std::int64_t now = monotonic_ns();
  const std::size_t before = transit_.size();
  while (!transit_.empty() && transit_.front().release_at_ns <= now) {
    const Owner owner = transit_.front().hold.owner;
    release_transit(actor_, transit_.front().hold);
    transit_.erase(transit_.begin());
    const bool last = std::none_of(transit_.begin(), transit_.end(), [owner](const Transit& other) {
      return other.hold.owner == owner;
    });
    if (last) release_slot(owner);
  }
  if (transit_.size() != before) after_sweep_(SweepCounts{});
}

void Reaper::release_slot(Owner dead) {
  // Clients can write there, so a stray store of one must not end the service.
  CAIRN_DCHECK(!memory_.owners().is_alive(dead));
  if (++released_since_full_sweep_ >= kRoundsPerFullSweep * memory_.slot_count()) {
    sweep_locks(actor_);
    released_since_full_sweep_ = 0;
  }
  clients_.release(dead.slot());
}

}  // namespace cairn::node
