// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/chunk_unpacker.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/system_call.h"
#include "memory/backing/region_backing.h"
#include "memory/buffer/region_keep.h"
#include "policy/arrays/box_copy.h"
#include "policy/arrays/dataset_news.h"
#include "service/fetching/demand.h"
#include "service/fetching/service_open.h"
#include "service/fetching/source_files.h"

namespace cairn::node {
namespace {

using arrays::PackedArray;
using arrays::PackedChunk;

// The program's processors come first.
constexpr int kUnpackerNice = 10;
// Bytes between two chunks that cost less than another request.
constexpr std::uint64_t kGapBytesMax = std::uint64_t{64} << 10;
constexpr std::chrono::seconds kUnreadFor(60);

arrays::ArrayLooks looks_of(const PackedArray& array) {
  return {array.shape, array.cell_bytes, array.chunk};
}

// Chunks that are read at once: they lie close to each other in the file.
struct ChunkRun {
  std::uint64_t offset = 0;
  std::uint64_t end = 0;
  std::vector<std::uint64_t> chunks;
};

// Whether the node may read these bytes of the file by itself. Requires: end > offset.
bool is_buffered(const ObjectAccess& file, std::uint64_t offset, std::uint64_t end) {
  CAIRN_DCHECK(end > offset);
  const ObjectHandling handling = file.object().handling();
  if (handling.parts == 0) return true;
  for (std::uint64_t at = offset / kBlockBytes; at <= (end - 1) / kBlockBytes; ++at) {
    const auto block = static_cast<BlockNumber>(at);
    if (file.actor.memory->part_of(handling, block).never_buffered) return false;
  }
  return true;
}

// What a rule never buffers is HDF5's to read: chunks in such parts, and gaps.
std::vector<ChunkRun> runs_of_chunks(std::vector<std::uint64_t> chunks,
                                     const std::vector<PackedChunk>& table,
                                     const ObjectAccess& file) {
  std::erase_if(chunks, [&](std::uint64_t chunk) {
    const PackedChunk& place = table[chunk];
    return !place.is_plain() || !is_buffered(file, place.offset, place.end());
  });
  std::ranges::sort(chunks, {}, [&table](std::uint64_t chunk) { return table[chunk].offset; });
  std::vector<ChunkRun> runs;
  for (const std::uint64_t chunk : chunks) {
    const PackedChunk& place = table[chunk];
    const bool is_close = !runs.empty() && place.offset <= runs.back().end + kGapBytesMax &&
                          place.end() - runs.back().offset <= ChunkUnpacker::kReadBytesMax &&
                          is_buffered(file, runs.back().offset, place.end());
    if (!is_close) runs.push_back({place.offset, place.end(), {}});
    runs.back().end = std::max(runs.back().end, place.end());
    runs.back().chunks.push_back(chunk);
  }
  return runs;
}

bool read_all(const ObjectAccess& file, std::uint64_t offset, std::span<std::byte> to) {
  return read_object(file, offset, to.data(), to.size()) == static_cast<ssize_t>(to.size());
}

}  // namespace

struct ChunkUnpacker::Worker {
  explicit Worker(const GatheringOptions& with) {
    actor.memory = &with.memory;
    actor.self = with.self;
    actor.counters = &uncounted;
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  CounterShard uncounted{};  // no program has asked for these reads
  Actor actor;
  ChunkCodec codec;
  std::vector<std::byte> packed;
  std::vector<std::byte> whole;  // a chunk as the file has it
  std::vector<std::byte> cells;  // and as the tiers have it
};

void ChunkUnpacker::start() {
  CAIRN_CHECK(threads_.empty());
  if (with_.budget_percent == 0 || !ChunkCodec::is_there()) return;
  try {
    while (threads_.size() < kThreads) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // With fewer threads there is less ahead; with none, HDF5 unpacks everything.
  }
}

void ChunkUnpacker::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void ChunkUnpacker::await_quiet() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_stopping_ || (busy_ == 0 && next_dataset() == nullptr); });
}

void ChunkUnpacker::on_packed_read(const message::PackedRead& read, Owner reader) {
  if (with_.budget_percent == 0 || !ChunkCodec::is_there()) return;
  const Object& file = with_.memory.objects().at(read.object);
  const FileVersion version = FileVersion::of(file);
  const ObjectKey key = file.key();
  // The record may be a region's by now.
  if (key.kind == ObjectKind::kRegion) return;
  {
    const std::lock_guard lock(mutex_);
    Dataset& dataset = *dataset_of(read, key, version);
    if (dataset.trust == Trust::kRefuted) return;
    dataset.reader = reader;
    programs_.insert(reader.slot());
    dataset.descriptor = read.descriptor;
    const Clock::time_point now = Clock::now();
    dataset.watch.forget_unread(now - kUnreadFor);
    dataset.read_at = now;
    dataset.watch.observe(reader.bits(), read.box);
    if (dataset.watch.take_shown_boxes()) grids_.note(looks_of(read.array), *dataset.watch.boxes());
  }
  changed_.notify_all();
}

// Requires: the lock.
ChunkUnpacker::DatasetPtr ChunkUnpacker::dataset_of(const message::PackedRead& read,
                                                    const ObjectKey& key,
                                                    const FileVersion& version) {
  const auto found = std::ranges::find_if(datasets_, [&](const DatasetPtr& each) {
    return each->file == read.object && each->key == key && each->version == version &&
           each->watch.array() == read.array;
  });
  if (found != datasets_.end()) {
    datasets_.splice(datasets_.begin(), datasets_, found);
  } else {
    auto dataset = std::make_shared<Dataset>(read.object, key, version, read.array);
    if (const auto boxes = grids_.find(looks_of(read.array))) dataset->watch.expect(*boxes);
    datasets_.push_front(std::move(dataset));
    if (datasets_.size() > kDatasetsMax) datasets_.pop_back();
  }
  CAIRN_CHECK(datasets_.size() <= kDatasetsMax);
  return datasets_.front();
}

// Requires: the lock.
ChunkUnpacker::DatasetPtr ChunkUnpacker::next_dataset() const {
  const auto found = std::ranges::find_if(
      datasets_, [](const DatasetPtr& each) { return each->watch.has_wanted(); });
  return found == datasets_.end() ? nullptr : *found;
}

std::uint64_t ChunkUnpacker::unpacked_in_all() const {
  return unpacked_.load(std::memory_order_relaxed);
}

std::uint64_t ChunkUnpacker::unpacked_of(ObjectIndex file,
                                         const std::array<std::uint64_t, 2>& token) const {
  const Object& record = with_.memory.objects().at(file);
  const ObjectKey key = record.key();
  const FileVersion version = FileVersion::of(record);
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const DatasetPtr& each : datasets_) {
    const bool is_it =
        each->key == key && each->version == version && each->watch.array().token == token;
    sum += is_it ? each->watch.unpacked() : 0;
  }
  return sum;
}

// Requires: the lock.
ChunkUnpacker::Work ChunkUnpacker::take(const DatasetPtr& dataset, std::size_t most) const {
  return {dataset,
          dataset->watch.take(most),
          dataset->reader,
          dataset->descriptor,
          dataset->trust,
          dataset->table,
          {programs_.begin(), programs_.end()}};
}

void ChunkUnpacker::work() {
  pthread_setname_np(pthread_self(), "cairn-unpacker");
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(sys::gettid()), kUnpackerNice);
  Worker worker(with_);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_stopping_ || next_dataset() != nullptr; });
    if (is_stopping_) return;
    const DatasetPtr dataset = next_dataset();
    const std::size_t most = chunks_in_budget(*dataset);
    if (dataset->trust == Trust::kRefuted || most == 0) {
      dataset->watch.drop_wanted();
      changed_.notify_all();
      continue;
    }
    Work work = take(dataset, most);
    ++busy_;
    lock.unlock();
    wait_for_demand(with_.memory, work.programs);
    try {
      const std::shared_lock fetching(with_.fetches);
      unpack(worker, work);
    } catch (const std::bad_alloc&) {
      // HDF5 unpacks these.
    }
    worker.actor.works_for = 0;
    worker.actor.drop_leases();
    lock.lock();
    --busy_;
    dataset->watch.finish(work.chunks);
    if (work.table != nullptr) dataset->table = work.table;
    // The other thread may have found otherwise meanwhile.
    if (work.trust != Trust::kUnproven && dataset->trust != Trust::kRefuted)
      dataset->trust = work.trust;
    changed_.notify_all();
  }
}

// How many chunks more one piece of work may have: RAM has room for them, and not too many wait for
// their readers. Requires: the lock.
std::size_t ChunkUnpacker::chunks_in_budget(const Dataset& dataset) const {
  const BucketPool& pool = with_.memory.pool(TierId::kMemory);
  const std::uint64_t free = std::uint64_t{pool.common_slabs()} * kBlockBytes;
  const std::uint64_t room = std::uint64_t{pool.slab_count()} * kBlockBytes;
  const std::uint64_t budget = room / 100 * with_.budget_percent;
  std::uint64_t unread = 0;
  const Clock::time_point now = Clock::now();
  for (const DatasetPtr& each : datasets_) {
    if (each->read_at + kUnreadFor >= now) unread += each->watch.unread_bytes();
  }
  const std::uint64_t bytes = std::min(free / 2, budget - std::min(budget, unread));
  return std::min<std::uint64_t>(bytes / dataset.watch.array().chunk_bytes(), kBatchChunks);
}

bool ChunkUnpacker::is_current(const Dataset& dataset) const {
  const Object& file = with_.memory.objects().at(dataset.file);
  return file.has(kObjectLive) && file.is_of(dataset.key) &&
         file.through.load(std::memory_order_seq_cst) == 0 && !may_be_written(file) &&
         FileVersion::of(file) == dataset.version;
}

void ChunkUnpacker::unpack(Worker& worker, Work& work) {
  const Dataset& dataset = *work.dataset;
  if (!is_current(dataset) || !dataset.version.has_settled() ||
      !with_.memory.owners().is_alive(work.reader) ||
      !with_.memory.objects().at(dataset.file).handling().is_fetched_ahead())
    return;
  const pid_t pid = with_.memory.slot(work.reader.slot()).pid.load(std::memory_order_relaxed);
  const SourceFilePtr source = open_source(with_.memory, dataset.file, pid, work.descriptor);
  StoreStatus status;
  if (source == nullptr || source->file.status(&status) < 0) return;
  worker.actor.works_for = work.reader.slot();
  ServiceOpen open(worker.actor, source->file, status, with_.files, with_.flusher);
  if (open.index() == dataset.file && is_current(dataset) && find_table(worker, work) &&
      prove(worker, open.access(), work))
    unpack_batch(worker, open.access(), work);
}

StoreStatus ChunkUnpacker::status_of(const Dataset& dataset, std::uint64_t chunk) const {
  const PackedWatch& watch = dataset.watch;
  const auto name = arrays::packed_region_name(watch.array().token, watch.grid(),
                                               watch.array().cell_bytes, chunk);
  return status_of_region(with_.memory.objects(), dataset.key,
                          {name, watch.bytes_of(chunk), dataset.version});
}

bool ChunkUnpacker::is_kept(const StoreStatus& region) const {
  const ObjectIndex known = with_.memory.objects().find(region.key);
  const std::uint64_t blocks = (region.stamp.size + kBlockBytes - 1) / kBlockBytes;
  return known != ObjectIndex::kNone && with_.memory.objects().at(known).blocks.load() >= blocks;
}

bool ChunkUnpacker::read_region(Worker& worker, const StoreStatus& region,
                                std::span<std::byte> to) {
  CAIRN_DCHECK(to.size() == region.stamp.size);
  if (!is_kept(region)) return false;
  RegionBacking nothing(region, nullptr);
  ServiceOpen open(worker.actor, nothing, region, with_.files, with_.flusher);
  return open.is_open() && read_all(open.access(), 0, to);
}

// The connector's, if it is sound.
bool ChunkUnpacker::find_table(Worker& worker, Work& work) {
  if (work.table != nullptr) return true;
  const Dataset& dataset = *work.dataset;
  const PackedArray& array = dataset.watch.array();
  std::vector<PackedChunk> table(dataset.watch.grid().chunks());
  const StoreStatus region = status_of_region(
      with_.memory.objects(), dataset.key,
      {arrays::chunk_table_name(array), table.size() * sizeof(PackedChunk), dataset.version});
  if (!read_region(worker, region, std::as_writable_bytes(std::span(table)))) return false;
  if (!is_sound(table, array, dataset.version.size)) {
    work.trust = Trust::kRefuted;
    return false;
  }
  work.table = std::make_shared<const std::vector<PackedChunk>>(std::move(table));
  return true;
}

// Compares one chunk with what HDF5 has made of it for a program.
bool ChunkUnpacker::prove(Worker& worker, const ObjectAccess& file, Work& work) {
  if (work.trust != Trust::kUnproven) return work.trust == Trust::kProven;
  const Dataset& dataset = *work.dataset;
  const std::vector<PackedChunk>& table = *work.table;
  std::vector<std::byte> expected;
  for (std::uint64_t chunk = 0; chunk < table.size(); ++chunk) {
    if (!table[chunk].is_plain() || !is_buffered(file, table[chunk].offset, table[chunk].end()))
      continue;
    expected.resize(dataset.watch.bytes_of(chunk));
    if (!read_region(worker, status_of(dataset, chunk), expected)) continue;
    worker.packed.resize(table[chunk].bytes);
    if (!read_all(file, table[chunk].offset, worker.packed)) return false;
    const bool is_same = make(worker, work, chunk, worker.packed) && worker.cells == expected;
    // The bytes and the table may be of two versions.
    if (!is_current(dataset)) return false;
    work.trust = is_same ? Trust::kProven : Trust::kRefuted;
    return is_same;
  }
  return false;
}

// Makes the chunk's cells in the worker's memory.
bool ChunkUnpacker::make(Worker& worker, const Work& work, std::uint64_t chunk,
                         std::span<const std::byte> packed) {
  const PackedWatch& watch = work.dataset->watch;
  const PackedArray& array = watch.array();
  worker.whole.resize(array.chunk_bytes());
  if (!worker.codec.unpack(array, packed, worker.whole)) return false;
  const arrays::Box cut = watch.grid().chunk(chunk);
  const arrays::Box whole = array.file_chunk(watch.grid(), chunk);
  if (cut == whole) {
    std::swap(worker.cells, worker.whole);
  } else {
    worker.cells.resize(watch.bytes_of(chunk));
    arrays::copy_cells(cut, array.cell_bytes, {worker.whole.data(), whole},
                       {worker.cells.data(), cut});
  }
  CAIRN_CHECK(worker.cells.size() == watch.bytes_of(chunk));
  return true;
}

void ChunkUnpacker::unpack_batch(Worker& worker, const ObjectAccess& file, const Work& work) {
  std::vector<std::uint64_t> chunks = work.chunks;
  std::erase_if(chunks,
                [&](std::uint64_t chunk) { return is_kept(status_of(*work.dataset, chunk)); });
  for (const ChunkRun& run : runs_of_chunks(std::move(chunks), *work.table, file)) {
    wait_for_demand(with_.memory, work.programs);
    worker.packed.resize(run.end - run.offset);
    if (!read_all(file, run.offset, worker.packed)) return;
    for (const std::uint64_t chunk : run.chunks) {
      if (is_stopping_.load(std::memory_order_relaxed)) return;
      const PackedChunk& place = (*work.table)[chunk];
      const auto packed = std::span(worker.packed).subspan(place.offset - run.offset, place.bytes);
      // One that cannot be unpacked is HDF5's, which says what is wrong with it.
      if (make(worker, work, chunk, packed)) keep(worker, work, chunk);
    }
  }
}

// Keeps what was made, unless the file has changed meanwhile.
void ChunkUnpacker::keep(Worker& worker, const Work& work, std::uint64_t chunk) {
  CAIRN_CHECK(work.trust == Trust::kProven);
  const Dataset& dataset = *work.dataset;
  const StoreStatus region = status_of(dataset, chunk);
  if (!is_current(dataset) || is_kept(region)) return;
  RegionBacking backing(region, worker.cells.data());
  ServiceOpen open(worker.actor, backing, region, with_.files, with_.flusher);
  if (!open.is_open()) return;
  open.access().object().set_handling(handling_of_region(with_.memory.objects().at(dataset.file)));
  if (!keep_whole_region(open.access())) return;
  const std::lock_guard lock(mutex_);
  PackedWatch& watch = work.dataset->watch;
  const std::uint64_t before = watch.unpacked();
  watch.note_unpacked(chunk, Clock::now());
  unpacked_.fetch_add(watch.unpacked() - before, std::memory_order_relaxed);
}

}  // namespace cairn::node
