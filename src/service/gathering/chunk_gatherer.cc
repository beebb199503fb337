// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/chunk_gatherer.h"

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "base/check.h"
#include "memory/backing/region_backing.h"
#include "memory/buffer/region_keep.h"
#include "service/fetching/service_open.h"

namespace cairn::node {
namespace {

using arrays::Box;
using arrays::ByteRun;

// Rows of this size are read from the file's blocks at the speed of a copy.
constexpr std::uint64_t kRowBytesMax = std::uint64_t{64} << 10;
constexpr std::uint64_t kRowsMax = std::uint64_t{1} << 18;
// A chunk waits for its rows, which are fetched for the program. They are looked at so often, and
// so long.
constexpr std::chrono::milliseconds kLookAgain(5);  // and twice as long the next time
constexpr std::chrono::seconds kPatience(5);
constexpr std::chrono::seconds kUnreadMax(60);

arrays::ArrayLooks looks_of(const arrays::FileArray& array) {
  return {array.shape, array.cell_bytes, {}};
}

}  // namespace

void ChunkGatherer::start() {
  CAIRN_CHECK(!thread_.joinable());
  unpacker_.start();
  if (with_.budget_percent == 0) return;
  thread_ = std::thread([this] { work(); });
}

void ChunkGatherer::stop() {
  unpacker_.stop();
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    is_given_up_.store(true, std::memory_order_relaxed);
  }
  changed_.notify_all();
  thread_.join();
  grids_.put_away();
}

void ChunkGatherer::await_quiet() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_stopping_ || (wanted_.empty() && !is_busy_); });
}

ArrayWatch& ChunkGatherer::watch_of(ObjectIndex file, const FileVersion& version,
                                    const arrays::FileArray& array) {
  const auto found = std::find_if(watched_.begin(), watched_.end(), [&](const Watched& each) {
    return each.file == file && each.version == version && each.watch.array() == array;
  });
  if (found != watched_.end()) {
    watched_.splice(watched_.begin(), watched_, found);
  } else {
    watched_.push_front({file, version, ArrayWatch(array)});
    if (watched_.size() > kArraysMax) watched_.pop_back();
    auto grid = published_grid(file, array);
    if (!grid) grid = grids_.find(looks_of(array));
    if (grid) watched_.front().watch.expect(*grid);
  }
  return watched_.front().watch;
}

void ChunkGatherer::on_array_read(const message::ArrayRead& read, Owner reader) {
  if (with_.budget_percent == 0) return;
  Chunk chunk;
  chunk.file = read.object;
  chunk.version = FileVersion::of(with_.memory.objects().at(read.object));
  chunk.array = read.array;
  chunk.box = read.box;
  chunk.reader = reader;
  chunk.descriptor = read.descriptor;
  chunk.look_at = Clock::now();
  chunk.give_up_at = chunk.look_at + kPatience;
  chunk.pause = kLookAgain;
  {
    const std::lock_guard lock(mutex_);
    forget(chunk);
    ArrayWatch& watch = watch_of(chunk.file, chunk.version, chunk.array);
    for (Box& next : watch.observe(reader.bits(), chunk.box)) {
      Chunk expected = chunk;
      expected.box = std::move(next);
      expected.was_read = false;
      want(std::move(expected));
    }
    if (watch.take_new_grid()) publish_grid(chunk, watch);
    if (watch.take_shown_grid()) grids_.note(looks_of(chunk.array), *watch.grid());
    if (!read.was_kept && watch.is_read_again()) want(std::move(chunk));
  }
  changed_.notify_all();
}

// Requires: the lock.
void ChunkGatherer::want(Chunk chunk) {
  if (wanted_.size() >= kChunksMax) {
    if (chunk.was_read || !wanted_.back().was_read) return;
    wanted_.pop_back();
  }
  const auto is_later = [](const Chunk& each) { return each.was_read; };
  const auto at =
      chunk.was_read ? wanted_.end() : std::find_if(wanted_.begin(), wanted_.end(), is_later);
  wanted_.insert(at, std::move(chunk));
}

// Its reader has come: before us, meanwhile, or after. Requires: the lock.
void ChunkGatherer::forget(const Chunk& read) {
  const auto is_it = [&read](const Chunk& each) {
    return each.file == read.file && each.array == read.array && each.box == read.box;
  };
  std::erase_if(wanted_, is_it);
  std::erase_if(unread_, is_it);
  if (is_busy_ && is_it(at_work_)) is_given_up_.store(true, std::memory_order_relaxed);
}

// One whose reader does not come leaves the tiers as other data does, and counts no longer.
void ChunkGatherer::note_gathered(const Chunk& chunk) {
  if (chunk.was_read) return;
  const std::lock_guard lock(mutex_);
  if (is_given_up_.load(std::memory_order_relaxed)) return;
  const Clock::time_point now = Clock::now();
  while (!unread_.empty() &&
         (unread_.size() >= kChunksMax || unread_.front().give_up_at + kUnreadMax < now))
    unread_.pop_front();
  unread_.push_back(chunk);
}

void ChunkGatherer::work() {
  pthread_setname_np(pthread_self(), "cairn-arrays");
  CounterShard uncounted{};  // no program has asked for these reads
  Actor actor;
  actor.memory = &with_.memory;
  actor.self = with_.self;
  actor.counters = &uncounted;
  grids_.take_out();
  std::unique_lock lock(mutex_);
  for (;;) {
    await_chunk(lock);
    if (is_stopping_) break;
    Chunk chunk = std::move(wanted_.front());
    wanted_.pop_front();
    is_busy_ = true;
    at_work_ = chunk;
    is_given_up_.store(false, std::memory_order_relaxed);
    lock.unlock();
    const bool is_worth_it = is_worth_gathering(chunk);
    const bool waits = is_worth_it && !has_come(&chunk);
    if (is_worth_it && !waits) {
      const std::shared_lock fetching(with_.fetches);
      gather(actor, chunk);
    }
    actor.drop_leases();
    lock.lock();
    chunk.look_at = Clock::now() + chunk.pause;
    chunk.pause *= 2;
    const bool is_wanted = !is_given_up_.load(std::memory_order_relaxed);
    if (waits && is_wanted && chunk.look_at < chunk.give_up_at) want(std::move(chunk));
    if (wanted_.empty()) {
      lock.unlock();
      source_.reset();  // to close may wait for the store
      lock.lock();
    }
    is_busy_ = false;
    changed_.notify_all();
  }
  lock.unlock();
  actor.drop_leases();
}

// Until there is one to look at, which comes first then: the first that has waited long enough.
void ChunkGatherer::await_chunk(std::unique_lock<std::mutex>& lock) {
  while (!is_stopping_) {
    const Clock::time_point now = Clock::now();
    const auto due = std::find_if(wanted_.begin(), wanted_.end(),
                                  [now](const Chunk& chunk) { return chunk.look_at <= now; });
    if (due != wanted_.end()) return void(std::rotate(wanted_.begin(), due, due + 1));
    const auto next = std::min_element(
        wanted_.begin(), wanted_.end(),
        [](const Chunk& left, const Chunk& right) { return left.look_at < right.look_at; });
    if (next == wanted_.end()) {
      changed_.wait(lock);
    } else {
      const Clock::time_point look_at = next->look_at;
      changed_.wait_until(lock, look_at);
    }
  }
}

bool ChunkGatherer::is_current(const Chunk& chunk) const {
  const Object& file = with_.memory.objects().at(chunk.file);
  return file.has(kObjectLive) && file.kind() != ObjectKind::kRegion &&
         file.through.load(std::memory_order_seq_cst) == 0 && !may_be_written(file) &&
         FileVersion::of(file) == chunk.version;
}

bool ChunkGatherer::is_worth_gathering(const Chunk& chunk) const {
  const std::uint64_t bytes = chunk.array.bytes_of(chunk.box);
  const std::uint64_t row_bytes = arrays::bytes_in_a_row(chunk.array, chunk.box);
  if (bytes > kChunkBytesMax || row_bytes >= kRowBytesMax || bytes / row_bytes > kRowsMax)
    return false;
  if (!is_current(chunk) || !chunk.version.has_settled()) return false;
  if (chunk.array.offset + chunk.array.bytes() > chunk.version.size) return false;
  // Its blocks, and those of the region.
  const BucketPool& pool = with_.memory.pool(TierId::kMemory);
  const std::uint64_t free = std::uint64_t{pool.common_slabs()} * kBlockBytes;
  const std::uint64_t room = std::uint64_t{pool.slab_count()} * kBlockBytes;
  const bool has_plenty = free > room / 4 + bytes;
  const bool is_in_budget = unread_bytes() + bytes <= room / 100 * with_.budget_percent;
  return chunk.was_read ? has_plenty : is_in_budget && free > 2 * bytes;
}

// Bytes that were gathered ahead, and not read since.
std::uint64_t ChunkGatherer::unread_bytes() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = 0;
  const Clock::time_point now = Clock::now();
  for (const Chunk& chunk : unread_) {
    if (chunk.give_up_at + kUnreadMax >= now) bytes += chunk.array.bytes_of(chunk.box);
  }
  return bytes;
}

void ChunkGatherer::gather(Actor& actor, const Chunk& chunk) {
  const Object& file = with_.memory.objects().at(chunk.file);
  // The record may be another file's, or a region's, by now.
  const ObjectKey key = file.key();
  if (key.kind == ObjectKind::kRegion || !with_.memory.owners().is_alive(chunk.reader)) return;
  const std::uint64_t bytes = chunk.array.bytes_of(chunk.box);
  const RegionIdentity region{arrays::region_name(chunk.array, chunk.box), bytes, chunk.version};
  const StoreStatus made = status_of_region(with_.memory.objects(), key, region);
  const ObjectIndex known = with_.memory.objects().find(made.key);
  const std::uint64_t blocks = (bytes + kBlockBytes - 1) / kBlockBytes;
  if (known != ObjectIndex::kNone && with_.memory.objects().at(known).blocks.load() >= blocks)
    return;

  SourceFile* source = source_of(chunk);
  StoreStatus status;
  if (source == nullptr || source->file.status(&status) < 0) return;
  actor.works_for = chunk.reader.slot();
  const std::unique_ptr<std::byte[]> cells(new (std::nothrow) std::byte[bytes]);
  bool is_whole = false;
  {
    ServiceOpen open(actor, source->file, status, with_.files, with_.flusher);
    is_whole = cells != nullptr && open.index() == chunk.file &&
               read_rows(open.access(), chunk, cells.get());
  }
  if (is_whole && is_current(chunk) && file.is_of(key)) {
    RegionBacking backing(made, cells.get());
    ServiceOpen open(actor, backing, made, with_.files, with_.flusher);
    if (open.is_open()) {
      open.access().object().set_handling(handling_of_region(file));
      if (keep_whole_region(open.access())) note_gathered(chunk);
    }
  }
  actor.works_for = 0;
}

SourceFile* ChunkGatherer::source_of(const Chunk& chunk) {
  const ObjectKey key = with_.memory.objects().at(chunk.file).key();
  if (source_ == nullptr || source_key_ != key) {
    const pid_t pid = with_.memory.slot(chunk.reader.slot()).pid.load(std::memory_order_relaxed);
    source_ = open_source(with_.memory, chunk.file, pid, chunk.descriptor);
    source_key_ = key;
  }
  return source_.get();
}

bool ChunkGatherer::read_rows(const ObjectAccess& access, const Chunk& chunk, std::byte* to) {
  for (const ByteRun& row : arrays::runs_of(chunk.array.shape, chunk.array.cell_bytes, chunk.box)) {
    if (is_given_up_.load(std::memory_order_relaxed)) return false;
    if (read_object(access, chunk.array.offset + row.offset, to, row.bytes) !=
        static_cast<ssize_t>(row.bytes))
      return false;
    to += row.bytes;
  }
  return true;
}

// Whether the tiers have all of its rows. A block that is missing is looked at first the next time.
bool ChunkGatherer::has_come(Chunk* waiting) const {
  const Chunk& chunk = *waiting;
  const auto is_there = [&](std::uint64_t block) {
    return with_.memory.directory().find(chunk.file, static_cast<BlockNumber>(block)) !=
           BucketIndex::kNone;
  };
  if (chunk.awaited && !is_there(*chunk.awaited)) return false;
  std::uint64_t next = 0;  // those before it are there
  for (const ByteRun& row : arrays::runs_of(chunk.array.shape, chunk.array.cell_bytes, chunk.box)) {
    const std::uint64_t end = (chunk.array.offset + row.end() - 1) / kBlockBytes + 1;
    next = std::max(next, (chunk.array.offset + row.offset) / kBlockBytes);
    for (; next < end; ++next) {
      if (is_there(next)) continue;
      waiting->awaited = next;
      return false;
    }
  }
  return true;
}

}  // namespace cairn::node
