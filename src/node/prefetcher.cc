// SPDX-License-Identifier: Apache-2.0
#include "node/prefetcher.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <chrono>

#include "buffer/fetch_ahead.h"
#include "buffer/object_lifecycle.h"
#include "prefetch/predictors.h"

namespace cairn::node {
namespace {

constexpr long kLookAgainNanos = 100'000;
constexpr int kLooksMax = 200;  // 20 ms: a program that never stops asking does not stop all others
constexpr auto kRoomAgain = std::chrono::milliseconds(2);

void nap(long nanos) {
  const timespec time{0, nanos};
  ::nanosleep(&time, nullptr);
}

}  // namespace

Prefetcher::Prefetcher(const NodeMemory& memory, const ClientTable& clients,
                       const NodeConfig& config)
    : memory_(memory), clients_(clients), config_(config), sources_(memory), streams_(memory) {}

std::string Prefetcher::predictor_name(unsigned number) {
  return number < kPredictorMakers.size() ? kPredictorMakers[number].name : "";
}

void Prefetcher::start() {
  if (!is_wanted()) return;
  for (unsigned worker = 0; worker < kWorkers; ++worker) threads_.emplace_back([this] { work(); });
}

void Prefetcher::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Prefetcher::take(std::span<const ToldAccess> batch) {
  {
    const std::lock_guard lock(mutex_);
    for (const ToldAccess& told : batch) {
      streams_.take(told);
      slots_.insert(told.slot);
    }
    std::uint64_t evicted = 0;
    for (unsigned number = 0; number < FetchJournal::kPredictorsMax; ++number)
      evicted += memory_.fetches().of(number).evicted_unused_bytes.load();
    if (evicted != evicted_unused_) streams_.note_evicted_unused();
    evicted_unused_ = evicted;
    streams_.take_closed([this](ObjectIndex object) { sources_.forget(object); });
  }
  changed_.notify_all();
}

void Prefetcher::forget_dead() {
  const std::lock_guard lock(mutex_);
  streams_.forget_dead();
  std::erase_if(slots_, [this](std::uint16_t slot) {
    return memory_.slot(slot).state.load(std::memory_order_acquire) != SlotState::kActive;
  });
  streams_.take_closed([this](ObjectIndex object) { sources_.forget(object); });
}

void Prefetcher::work() {
  pthread_setname_np(pthread_self(), "cairn-prefetch");
  Actor actor;
  actor.memory = &memory_;
  actor.self = clients_.service();
  actor.counters = &memory_.slot(actor.self.slot()).shards[0];
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    WantedBlocks wanted;
    if (!has_budget() || !streams_.next(kFetchBlocksMax, &wanted)) {
      actor.drop_leases();
      changed_.wait(lock);
      continue;
    }
    const std::vector<std::uint16_t> slots(slots_.begin(), slots_.end());
    lock.unlock();
    wait_for_demand(slots);
    const Outcome outcome = fetch(actor, wanted);
    lock.lock();
    if (outcome == Outcome::kDone) continue;
    streams_.give_back(wanted, outcome == Outcome::kBroken);
    if (outcome != Outcome::kNoRoom) continue;
    // The organizer makes room, as for programs that read.
    actor.drop_leases();
    memory_.wake_organizer();
    changed_.wait_for(lock, kRoomAgain);
  }
  lock.unlock();
  actor.drop_leases();
}

bool Prefetcher::has_budget() const {
  const BucketPool& pool = memory_.pool(TierId::kMemory);
  const std::uint64_t room = std::uint64_t{pool.slab_count()} * kBlockBytes;
  const std::uint64_t budget = room / 100 * config_.prefetch_percent;
  const bool has_plenty = std::uint64_t{pool.common_slabs()} * 2 > pool.slab_count();
  return has_plenty || memory_.fetches().unused_bytes() < budget;
}

void Prefetcher::wait_for_demand(std::span<const std::uint16_t> slots) const {
  const auto is_demanded = [&] {
    return std::any_of(slots.begin(), slots.end(), [this](std::uint16_t slot) {
      return memory_.events(slot).demands.load(std::memory_order_relaxed) != 0;
    });
  };
  for (int look = 0; look < kLooksMax && is_demanded(); ++look) nap(kLookAgainNanos);
}

Prefetcher::Outcome Prefetcher::fetch(Actor& actor, const WantedBlocks& wanted) {
  const pid_t pid = memory_.slot(wanted.slot).pid.load(std::memory_order_relaxed);
  const SourceFilePtr source = sources_.open(wanted.object, pid, wanted.descriptor);
  if (source == nullptr) return Outcome::kBroken;
  StoreStatus status;
  if (source->file.status(&status) < 0) return Outcome::kBroken;
  NoService nobody;
  // Held open, so that the record stays this file's.
  const ObjectIndex index = open_object(actor, source->file, status, false);
  if (index == ObjectIndex::kNone) return Outcome::kBroken;
  const ObjectAccess access{actor, index, source->file, nobody};
  Fetched fetched;
  if (index == wanted.object)
    fetched = fetch_ahead(access, wanted.first, wanted.count, wanted.predictor);
  (void)close_object(access, false);
  if (index != wanted.object || fetched.error < 0) return Outcome::kBroken;
  return fetched.has_no_room && fetched.blocks == 0 ? Outcome::kNoRoom : Outcome::kDone;
}

}  // namespace cairn::node
