// SPDX-License-Identifier: Apache-2.0
#include "service/fetching/prefetcher.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string_view>

#include "base/check.h"
#include "memory/buffer/fetch_ahead.h"
#include "policy/prefetch/predictors.h"
#include "service/fetching/demand.h"
#include "service/organizer/move_batch.h"
#include "service/process/log.h"
#include "service/process/log_file.h"
#include "service/process/quiet_open.h"
#include "service/write_back/service_opens.h"
#include "service/write_back/store_files.h"

namespace cairn::node {
namespace {

constexpr auto kRoomAgain = std::chrono::milliseconds(2);
// How many files of a declared order are fetched ahead.
constexpr std::size_t kFilesAhead = 32;
// So often in a row files that find no room are tried again: for a fifth of a second.
constexpr unsigned kFileTriesMax = 100;
// Segments that go down at a time for hotter ones: more of them are the organizer's work.
constexpr std::size_t kColdMax = 256;
constexpr std::size_t kNamesMax = 1'000'000;
constexpr std::uint64_t kFileBlocksMax = 1024;  // what is behind them is fetched once it is read
constexpr std::uint8_t kDeclared = 0;
static_assert(std::string_view(kPredictorMakers[kDeclared].name) == "declared");
static_assert(1 + Prefetcher::kWorkers <= ClientSlot::kShards, "a shard for each worker");

}  // namespace

Prefetcher::Prefetcher(const PrefetcherOptions& options)
    : config_(options.config),
      memory_(options.memory),
      self_(options.self),
      store_files_(options.files),
      flusher_(options.flusher),
      directories_(options.directories),
      sources_(options.memory),
      orders_(options.orders),
      streams_(options.memory, options.streams, &orders_,
               [this](const ToldAccess& told) {
                 return path_of_descriptor(memory_.slot(told.slot()).pid.load(),
                                           told.event.descriptor);
               }),
      fetching_(options.fetches) {}

void Prefetcher::note_declared(DeclaredOrders& fresh) {
  memory_.event_board().opens_are_urgent.store(1);
  want_first_files(fresh);
  changed_.notify_all();
}

std::string Prefetcher::predictor_name(unsigned number) const {
  if (number == Chooser::kSupplied && !supplied_name_.empty()) return supplied_name_;
  if (number == ReadStreams::kByHeat) return "heat";
  return number < kPredictorMakers.size() ? kPredictorMakers[number].name : "";
}

void Prefetcher::start() {
  CAIRN_CHECK(threads_.empty());
  if (const std::string& directory = config_.remember_directory; !directory.empty()) {
    kept_.emplace(directory, KnowledgeDirectory::Bounds{}, log_warning);
    streams_.keep_in(&*kept_);
  }
  memory_.event_board().opens_are_urgent.store(orders_.is_empty() ? 0 : 1);
  // Their author is about to read them.
  want_first_files(orders_);
  for (unsigned worker = 0; worker < kWorkers; ++worker)
    threads_.emplace_back([this, worker] { work(worker); });
}

void Prefetcher::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true);
  }
  changed_.notify_all();
  if (threads_.empty()) return;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  put_away();
}

void Prefetcher::put_away() {
  const std::lock_guard lock(mutex_);
  if (!kept_) return;
  streams_.put_away();
  if (kept_->counts().put != 0) kept_->tidy();
  log::info("orders of reads in {}: of {} files known from before, of {} new or changed",
            kept_->directory(), kept_->counts().fetched, kept_->counts().put);
}

std::optional<KnowledgeDirectory::Counts> Prefetcher::kept_orders() {
  const std::lock_guard lock(mutex_);
  if (!kept_) return std::nullopt;
  return kept_->counts();
}

void Prefetcher::on_accesses(std::span<const ToldAccess> batch) {
  {
    const std::lock_guard lock(mutex_);
    for (const ToldAccess& told : batch) {
      streams_.take(told);
      if (told.event.kind == AccessKind::kOpen && !orders_.is_empty()) want_files_after(told);
      slots_.insert(told.slot());
    }
    std::uint64_t evicted = 0;
    for (unsigned number = 0; number < FetchJournal::kPredictorsMax; ++number)
      evicted += memory_.fetches().of(number).evicted_unused_bytes.load();
    if (evicted != evicted_unused_) streams_.note_evicted_unused();
    evicted_unused_ = evicted;
    for (const ToldAccess& told : batch) forget_sources(told.ends);
    if (!streams_.wants_any() && files_.empty()) return;
  }
  changed_.notify_all();
}

void Prefetcher::carry_by_heat(ObjectIndex object, std::uint64_t offset, std::uint64_t bytes,
                               TierId to, bool is_promotion) {
  const auto first = static_cast<std::int64_t>(offset / kBlockBytes);
  const auto count = static_cast<std::uint32_t>((bytes + kBlockBytes - 1) / kBlockBytes);
  {
    const std::lock_guard lock(mutex_);
    if (is_promotion) {
      streams_.want_hot(object, BlockRun{first, count}, to != TierId::kMemory);
    } else if (cold_.size() < kColdMax) {
      WantedBlocks cold;
      cold.object = object;
      cold.first = static_cast<BlockNumber>(first);
      cold.count = count;
      cold.is_cold = true;
      cold_.push_back(cold);
    }
  }
  changed_.notify_all();
}

void Prefetcher::on_deaths(const StreamEnds& ends) {
  const std::lock_guard lock(mutex_);
  streams_.forget(ends);
  if (streams_.size() == 0 && !awaits_reader_) {
    files_.clear();
    files_seen_.clear();
  }
  std::erase_if(slots_, [this](std::uint16_t slot) {
    return memory_.slot(slot).state.load(std::memory_order_acquire) != SlotState::kActive;
  });
  forget_sources(ends);
}

void Prefetcher::forget_sources(const StreamEnds& ends) {
  for (const AccessStream* stream : ends.streams) sources_.forget(stream->object());
}

// The files that a declared order has behind the one that was opened.
void Prefetcher::want_files_after(const ToldAccess& told) {
  const ObjectKey key = memory_.objects().at(told.event.object).key();
  const auto known = names_.find(key);
  const std::string path =
      known != names_.end()
          ? known->second
          : path_of_descriptor(memory_.slot(told.slot()).pid.load(), told.event.descriptor);
  std::vector<std::string> files = orders_.files_after(path, kFilesAhead);
  if (!files.empty()) awaits_reader_ = false;
  want_files(std::move(files));
  // The next epoch reads the same files anew.
  files_seen_.erase(path);
  if (names_.size() > kNamesMax) names_.clear();
}

// A process that ends before the first of them is opened is not their reader.
void Prefetcher::want_first_files(DeclaredOrders& orders) {
  std::vector<std::string> files = orders.first_files(kFilesAhead);
  if (files.empty()) return;
  const std::lock_guard lock(mutex_);
  awaits_reader_ = true;
  want_files(std::move(files));
}

void Prefetcher::want_files(std::vector<std::string> paths) {
  for (std::string& path : paths) {
    if (files_seen_.insert(path).second) files_.push_back(std::move(path));
  }
}

void Prefetcher::work(unsigned worker) {
  pthread_setname_np(pthread_self(), "cairn-prefetch");
  Actor actor;
  actor.memory = &memory_;
  actor.self = self_;
  // Not the shard that the service's other threads count in.
  actor.counters = &memory_.slot(actor.self.slot()).shards[1 + worker];
  std::unique_lock lock(mutex_);
  while (!stopping_.load()) {
    if (work_once(actor, lock)) continue;
    actor.drop_leases();
    changed_.wait(lock);
  }
  lock.unlock();
  actor.drop_leases();
}

// The blocks that are wanted soonest go into RAM, the rest below it.
bool Prefetcher::pick(WantedBlocks* wanted, std::string* path) {
  if (has_budget()) {
    streams_.set_brings_up(memory_.pool(TierId::kMemory).common_slabs() >
                           memory_.organizer_board().roomy_slabs.load(std::memory_order_relaxed));
    if (streams_.next(kFetchBlocksMax, at_work_, wanted)) return true;
    while (!files_.empty()) {
      *path = std::move(files_.front());
      files_.pop_front();
      // Else the program has opened it before us.
      if (files_seen_.contains(*path)) return true;
      path->clear();
    }
  }
  if (!cold_.empty()) {
    *wanted = cold_.front();
    cold_.pop_front();
    return true;
  }
  const std::uint32_t blocks = blocks_beyond();
  return blocks != 0 && streams_.next_beyond(kFetchBlocksMax, blocks, at_work_, wanted);
}

void Prefetcher::note_at_work(const WantedBlocks& wanted) {
  at_work_.push_back({wanted.object, {static_cast<std::int64_t>(raw(wanted.first)), wanted.count}});
  CAIRN_CHECK(at_work_.size() <= kWorkers);
}

// The piece behind it may have been waiting for that.
void Prefetcher::note_done(const WantedBlocks& wanted) {
  const auto first = static_cast<std::int64_t>(raw(wanted.first));
  const auto done = std::find_if(at_work_.begin(), at_work_.end(), [&](const BlocksAtWork& one) {
    return one.object == wanted.object && one.run.first == first;
  });
  CAIRN_CHECK(done != at_work_.end());
  at_work_.erase(done);
  changed_.notify_one();
}

// False when there is nothing to do.
bool Prefetcher::work_once(Actor& actor, std::unique_lock<std::mutex>& lock) {
  CAIRN_CHECK(lock.owns_lock());
  WantedBlocks wanted;
  std::string path;
  if (!pick(&wanted, &path)) return false;
  const std::vector<std::uint16_t> slots(slots_.begin(), slots_.end());
  const WantedBlocks picked = wanted;
  if (path.empty()) note_at_work(picked);
  lock.unlock();
  wait_for_demand(memory_, slots);
  Outcome outcome = Outcome::kDone;
  {
    const std::shared_lock<std::shared_mutex> fetching(fetching_);
    outcome = path.empty() ? fetch(actor, &wanted) : fetch_file(actor, path, slots);
  }
  lock.lock();
  if (path.empty()) note_done(picked);
  if (!path.empty()) {
    give_back_file(std::move(path), outcome);
  } else if (outcome == Outcome::kDone) {
    ReadStreams::note_fetched(wanted);
  } else {
    streams_.give_back(wanted, outcome == Outcome::kBroken);
  }
  if (outcome != Outcome::kNoRoom) return true;
  // The organizer makes room, as for programs that read.
  actor.drop_leases();
  memory_.organizer_board().bell.ring();
  changed_.wait_for(lock, kRoomAgain);
  return true;
}

// Blocks that find no room are tried again, but not for ever: the cause may be another one.
void Prefetcher::give_back_file(std::string path, Outcome outcome) {
  const bool waits = outcome == Outcome::kNoRoom && file_tries_ < kFileTriesMax;
  file_tries_ = waits ? file_tries_ + 1 : 0;
  if (waits && files_seen_.contains(path)) files_.push_front(std::move(path));
}

bool Prefetcher::has_budget() const {
  const BucketPool& pool = memory_.pool(TierId::kMemory);
  const std::uint64_t room = std::uint64_t{pool.slab_count()} * kBlockBytes;
  const std::uint64_t budget = room / 100 * config_.prefetch_percent;
  const bool has_plenty = std::uint64_t{pool.common_slabs()} * 4 > pool.slab_count();
  const FetchJournal& fetches = memory_.fetches();
  return has_plenty || fetches.unused_bytes() < budget + fetches.below_bytes();
}

// How far ahead of its reader a stream may be fetched into file tiers; 0: there is no room.
std::uint32_t Prefetcher::blocks_beyond() const {
  std::uint64_t slabs = 0;
  for (unsigned tier = 1; tier < memory_.tiers_for(BufferingMode::kAsync); ++tier)
    slabs += memory_.pool(static_cast<TierId>(tier)).slab_count();
  const std::uint64_t budget = slabs * config_.prefetch_percent / 100;
  if (memory_.fetches().below_bytes() / kBlockBytes >= budget || !tier_below()) return 0;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(
      Lookahead::kBlocksMax + budget, std::numeric_limits<std::uint32_t>::max()));
}

// The fastest with room, as has_room() says of RAM.
std::optional<TierId> Prefetcher::tier_below() const {
  for (unsigned index = 1; index < memory_.tiers_for(BufferingMode::kAsync); ++index) {
    const auto tier = static_cast<TierId>(index);
    const std::uint32_t low =
        memory_.organizer_board().low_slabs[index].load(std::memory_order_relaxed);
    if (memory_.pool(tier).common_slabs() > low / 2 + kFetchBlocksMax) return tier;
  }
  return std::nullopt;
}

// Not the last of what the organizer keeps free: half of it is for programs. (Less than its low
// mark must be left now and then, or it would never make room.)
bool Prefetcher::has_room() const {
  const std::uint32_t low = memory_.organizer_board().low_slabs[0].load(std::memory_order_relaxed);
  return memory_.pool(TierId::kMemory).common_slabs() > low / 2;
}

// A whole file that no program has open yet, as if it were being opened for reading.
Prefetcher::Outcome Prefetcher::fetch_file(Actor& actor, const std::string& path,
                                           std::span<const std::uint16_t> slots) {
  if (!has_room()) return Outcome::kNoRoom;
  const UniqueFd fd = open_quietly(path);
  StoreStatus status;
  if (!fd || store_status(fd.get(), &status) < 0) return Outcome::kBroken;
  const ObjectHandling handling =
      handling_for_reader(memory_, directories_, path, status.stamp.size);
  if (handling.mode == BufferingMode::kBypass || handling.prefetch == PrefetchHint::kNone)
    return Outcome::kBroken;
  {
    const std::lock_guard lock(mutex_);
    names_.insert_or_assign(status.key, path);
  }
  PosixBacking file(fd.get(), O_RDONLY);
  ServiceOpen open(actor, file, status, store_files_, flusher_);
  if (!open.is_open()) return Outcome::kBroken;
  Outcome outcome = Outcome::kDone;
  const std::uint64_t blocks = (status.stamp.size + kBlockBytes - 1) / kBlockBytes;
  for (std::uint64_t block = 0; block < std::min(blocks, kFileBlocksMax);) {
    if (stopping_.load()) break;
    // The budget was looked at for the file: small ones are not cut in two by it.
    if (block >= kFetchBlocksMax && !has_budget()) break;
    if (block != 0) wait_for_demand(memory_, slots);
    const auto number = static_cast<BlockNumber>(block);
    if (memory_.directory().find(open.index(), number) != BucketIndex::kNone) {
      ++block;
      continue;
    }
    const Fetched fetched = fetch_ahead(open.access(), number, kFetchBlocksMax, kDeclared);
    block += fetched.blocks;
    if (fetched.has_no_room) outcome = Outcome::kNoRoom;
    if (fetched.has_no_room || fetched.blocks == 0) break;
  }
  return outcome;
}

// Up from file tiers or down to one, whose devices the organizer's batches keep from being flooded.
void Prefetcher::move(Actor& actor, const WantedBlocks& wanted, unsigned count, TierId target,
                      PlacementReason reason) {
  CAIRN_CHECK(count <= wanted.count);
  const bool is_up = target == TierId::kMemory;
  PlainBatchWriter writer;
  MoveBatch batch(memory_, writer);
  batch.set_fetched_by(wanted.predictor);
  for (unsigned at = 0; at < count; ++at) {
    const auto number = static_cast<BlockNumber>(raw(wanted.first) + at);
    const BucketIndex bucket = memory_.directory().find(wanted.object, number);
    const ObjectHandling handling = memory_.objects().at(wanted.object).handling();
    const PartHandling part = memory_.part_of(handling, number);
    const auto home = part.home ? part.home : handling.home;
    if (bucket == BucketIndex::kNone || memory_.in_memory(bucket) == is_up || home.has_value())
      continue;
    // It has been asked for sooner than was thought.
    if (wanted.is_for_below && !memory_.block(bucket).is_unread()) continue;
    (void)batch.add(actor, bucket, target, reason);
    if (batch.is_full()) (void)batch.advance(actor);
  }
  (void)batch.finish(actor);
  OrganizerBoard& organizer = memory_.organizer_board();
  if (organizer.is_short(target, memory_.pool(target).common_slabs())) organizer.bell.ring();
}

// The blocks that could not be fetched for want of room are left in `wanted`.
Prefetcher::Outcome Prefetcher::fetch(Actor& actor, WantedBlocks* wanted_blocks) {
  WantedBlocks& wanted = *wanted_blocks;
  if (wanted.is_cold) {
    if (const auto tier = tier_below())
      move(actor, wanted, wanted.count, *tier, PlacementReason::kDemoted);
    return Outcome::kDone;
  }
  CAIRN_CHECK(wanted.count != 0);
  CAIRN_CHECK(wanted.count <= kFetchBlocksMax);
  if (!memory_.owners().is_alive(wanted.owner)) return Outcome::kBroken;
  if (!has_room()) return Outcome::kNoRoom;
  const pid_t pid = memory_.slot(wanted.owner.slot()).pid.load(std::memory_order_relaxed);
  const SourceFilePtr source = sources_.open(wanted.object, pid, wanted.descriptor);
  if (source == nullptr) return Outcome::kBroken;
  StoreStatus status;
  if (source->file.status(&status) < 0) return Outcome::kBroken;
  Fetched fetched;
  const bool is_its = fetch_from(actor, wanted, *source, status, &fetched);
  // Closed meanwhile: nobody else would drop our descriptor.
  if (memory_.objects().at(wanted.object).opens.load() == 0) sources_.forget(wanted.object);
  if (!is_its || fetched.error < 0) return Outcome::kBroken;
  if (!fetched.has_no_room) return Outcome::kDone;
  CAIRN_CHECK(fetched.blocks <= wanted.count);
  wanted.first = static_cast<BlockNumber>(raw(wanted.first) + fetched.blocks);
  wanted.count -= fetched.blocks;
  return Outcome::kNoRoom;
}

bool Prefetcher::fetch_from(Actor& actor, const WantedBlocks& wanted, SourceFile& source,
                            const StoreStatus& status, Fetched* fetched) {
  ServiceOpen open(actor, source.file, status, store_files_, flusher_);
  if (open.index() != wanted.object) return false;
  actor.works_for = wanted.owner.slot();
  if (wanted.is_below) {
    move(actor, wanted, wanted.count, TierId::kMemory, PlacementReason::kFetched);
  } else {
    *fetched = fetch_missing(open.access(), wanted.first, wanted.count, wanted.predictor);
  }
  if (wanted.is_for_below) {
    if (const auto tier = tier_below())
      move(actor, wanted, fetched->blocks, *tier, PlacementReason::kFetched);
  }
  actor.works_for = 0;
  return true;
}

}  // namespace cairn::node
