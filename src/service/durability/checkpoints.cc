// SPDX-License-Identifier: Apache-2.0
#include "service/durability/checkpoints.h"

#include <pthread.h>

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"

namespace cairn::node {
namespace {

static_assert(Checkpoints::kSharePercent > 0 && Checkpoints::kSharePercent <= 100);

// After `worked`, so that the work has its share of both.
std::chrono::nanoseconds rest_after(std::int64_t worked_ns) {
  constexpr std::int64_t kOthers = 100 - Checkpoints::kSharePercent;
  return std::chrono::nanoseconds(worked_ns * kOthers / Checkpoints::kSharePercent);
}

}  // namespace

void Checkpoints::start(std::chrono::seconds interval) {
  CAIRN_CHECK(!thread_.joinable() && interval.count() > 0);
  thread_ = std::thread([this, interval] { work(interval); });
}

void Checkpoints::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool Checkpoints::rest(std::chrono::nanoseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return stopping_; });
}

void Checkpoints::work(std::chrono::seconds interval) {
  pthread_setname_np(pthread_self(), "cairn-checkpt");
  std::chrono::nanoseconds pause = interval;
  while (rest(pause)) {
    const std::int64_t began_ns = monotonic_ns();
    make_one();
    const std::chrono::nanoseconds took(monotonic_ns() - began_ns);
    pause = std::max<std::chrono::nanoseconds>(interval - took, std::chrono::nanoseconds(0));
  }
}

void Checkpoints::make_one() {
  DurabilityCounts& counts = with_.counts;
  const std::int64_t began_ns = monotonic_ns();
  const std::uint64_t before = with_.logged.log().figures().appended_bytes;
  bool goes_on = true;
  LoggingPace pace;
  pace.bytes_at_once = kBytesAtOnce;
  pace.takes_owed = true;
  pace.rest = [&](std::int64_t worked_ns) { return goes_on = rest(rest_after(worked_ns)); };
  const DirtyLogging round = log_dirty(with_.memory, with_.logged, with_.files, pace);
  std::uint64_t stored = 0;
  for (const ObjectIndex object : round.refused) {
    if (!goes_on) break;
    if (with_.flusher.flush_now(object, true) == 0) ++stored;
    goes_on = rest(std::chrono::nanoseconds(0));
  }
  counts.checkpoint_skipped.fetch_add(round.skipped, std::memory_order_relaxed);
  counts.checkpoint_stored.fetch_add(stored, std::memory_order_relaxed);
  counts.checkpoint_bytes.fetch_add(with_.logged.log().figures().appended_bytes - before,
                                    std::memory_order_relaxed);
  counts.checkpoint_took_ns.store(monotonic_ns() - began_ns);
  counts.checkpoint_ns.store(began_ns);
  counts.checkpoints.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace cairn::node
