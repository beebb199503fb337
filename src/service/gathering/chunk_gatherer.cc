// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/chunk_gatherer.h"

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "base/check.h"
#include "memory/backing/region_backing.h"
#include "memory/buffer/fetch_ahead.h"
#include "service/fetching/service_open.h"

namespace cairn::node {
namespace {

using arrays::Box;
using arrays::ByteRun;

// Rows of this size are read from the file's blocks at the speed of a copy.
constexpr std::uint64_t kRowBytesMax = std::uint64_t{64} << 10;
constexpr std::uint64_t kRowsMax = std::uint64_t{1} << 18;
// What lies between rows is read with them where it costs less than a request to a disk.
constexpr arrays::ReadCost kStoreCost{.request_seconds = 0.002,
                                      .bytes_per_second = 128e6,
                                      .bytes_max = std::uint64_t{kFetchBlocksMax} * kBlockBytes};
// So many times the blocks that have wanted bytes, at most.
constexpr std::uint64_t kSievedMax = 4;

std::uint64_t blocks_in(const ByteRun& run) {
  return (run.end() - 1) / kBlockBytes - run.offset / kBlockBytes + 1;
}

}  // namespace

void ChunkGatherer::start() {
  CAIRN_CHECK(!thread_.joinable());
  if (with_.budget_percent == 0) return;
  thread_ = std::thread([this] { work(); });
}

void ChunkGatherer::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
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
  }
  return watched_.front().watch;
}

void ChunkGatherer::on_array_read(const message::ArrayRead& read, Owner reader) {
  if (with_.budget_percent == 0) return;
  Chunk chunk{read.object, FileVersion::of(with_.memory.objects().at(read.object)),
              read.array,  read.box,
              reader,      read.descriptor,
              true};
  {
    const std::lock_guard lock(mutex_);
    forget(chunk);
    for (Box& next :
         watch_of(chunk.file, chunk.version, chunk.array).observe(reader.bits(), chunk.box)) {
      Chunk expected = chunk;
      expected.box = std::move(next);
      expected.was_read = false;
      want(std::move(expected));
    }
    if (!read.was_kept) want(std::move(chunk));
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

// Its reader has come before us. Requires: the lock.
void ChunkGatherer::forget(const Chunk& read) {
  std::erase_if(wanted_, [&read](const Chunk& each) {
    return each.file == read.file && each.array == read.array && each.box == read.box;
  });
}

void ChunkGatherer::work() {
  pthread_setname_np(pthread_self(), "cairn-arrays");
  CounterShard uncounted{};  // no program has asked for these reads
  Actor actor;
  actor.memory = &with_.memory;
  actor.self = with_.self;
  actor.counters = &uncounted;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_stopping_ || !wanted_.empty(); });
    if (is_stopping_) break;
    const Chunk chunk = std::move(wanted_.front());
    wanted_.pop_front();
    is_busy_ = true;
    lock.unlock();
    if (is_worth_it(chunk)) {
      const std::shared_lock fetching(with_.fetches);
      gather(actor, chunk);
    }
    actor.drop_leases();
    lock.lock();
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

bool ChunkGatherer::is_current(const Chunk& chunk) const {
  const Object& file = with_.memory.objects().at(chunk.file);
  return file.has(kObjectLive) && file.kind() != ObjectKind::kRegion &&
         file.through.load(std::memory_order_seq_cst) == 0 &&
         FileVersion::of(file) == chunk.version;
}

bool ChunkGatherer::is_worth_it(const Chunk& chunk) const {
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
  return has_plenty ||
         (!chunk.was_read && 2 * bytes <= room / 100 * with_.budget_percent && free > 2 * bytes);
}

void ChunkGatherer::gather(Actor& actor, const Chunk& chunk) {
  const Object& file = with_.memory.objects().at(chunk.file);
  if (!with_.memory.owners().is_alive(chunk.reader)) return;
  const std::uint64_t bytes = chunk.array.bytes_of(chunk.box);
  const RegionIdentity region{arrays::region_name(chunk.array, chunk.box), bytes, chunk.version};
  const StoreStatus made = status_of_region(with_.memory.objects(), file.key(), region);
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
  if (is_whole && is_current(chunk)) {
    RegionBacking backing(made, cells.get());
    ServiceOpen open(actor, backing, made, with_.files, with_.flusher);
    if (open.is_open()) {
      open.access().object().set_handling(file.handling());
      (void)read_object(open.access(), 0, cells.get(), bytes);
    }
  }
  actor.works_for = 0;
}

SourceFile* ChunkGatherer::source_of(const Chunk& chunk) {
  if (source_ == nullptr || source_file_ != chunk.file) {
    const pid_t pid = with_.memory.slot(chunk.reader.slot()).pid.load(std::memory_order_relaxed);
    source_ = open_source(with_.memory, chunk.file, pid, chunk.descriptor);
    source_file_ = chunk.file;
  }
  return source_.get();
}

bool ChunkGatherer::read_rows(const ObjectAccess& access, const Chunk& chunk, std::byte* to) {
  const std::vector<ByteRun> rows =
      arrays::runs_of(chunk.array.shape, chunk.array.cell_bytes, chunk.box);
  std::uint64_t wanted = 0;
  for (const ByteRun& row : rows) wanted += blocks_in(row) * kBlockBytes;
  const std::vector<ByteRun> reads =
      arrays::plan_reads(chunk.array.shape, chunk.array.cell_bytes, chunk.box, kStoreCost);
  std::uint64_t planned = 0;
  for (const ByteRun& read : reads) planned += read.bytes;
  if (planned <= kSievedMax * wanted) {
    for (const ByteRun& read : reads) {
      if (!is_current(chunk)) return false;
      bring_in(access, {chunk.array.offset + read.offset, read.bytes});
    }
  }
  for (const ByteRun& row : rows) {
    if (read_object(access, chunk.array.offset + row.offset, to, row.bytes) !=
        static_cast<ssize_t>(row.bytes))
      return false;
    to += row.bytes;
  }
  return true;
}

// Into RAM, what of it is in no tier. What there is no room for is read from the store.
void ChunkGatherer::bring_in(const ObjectAccess& access, const ByteRun& run) {
  const std::uint64_t end = (run.end() + kBlockBytes - 1) / kBlockBytes;
  for (std::uint64_t block = run.offset / kBlockBytes; block < end;) {
    const auto number = static_cast<BlockNumber>(block);
    if (access.actor.memory->directory().find(access.index, number) != BucketIndex::kNone) {
      ++block;
      continue;
    }
    const auto count = static_cast<unsigned>(std::min<std::uint64_t>(end - block, kFetchBlocksMax));
    const Fetched fetched = fetch_ahead(access, number, count, 0);
    if (fetched.has_no_room || fetched.blocks == 0) return;
    block += fetched.blocks;
  }
}

}  // namespace cairn::node
