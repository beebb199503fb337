// SPDX-License-Identifier: Apache-2.0
// Unpacks chunks of packed datasets before they are read, and keeps them as the connector keeps
// what HDF5 has unpacked: as regions of the same names (policy/arrays/dataset_news.h). So a read
// that was expected finds its chunks, and no processor of the program's unpacks them.
//
// Where the chunks are is in a table that the connector has kept as a region; it is checked before
// it is used. Which chunks come next follows from the boxes that programs read (PackedWatch). The
// packed bytes come from the file's blocks in the tiers, or from the store by way of them.
//
// Nobody takes this unpacker's word: before it keeps a chunk of a dataset, it has unpacked one that
// HDF5 has unpacked for a program, and both were the same. If they are not, the dataset is left to
// HDF5. All that is known of a dataset is of one version of its file.
//
// Thread safety: start() and stop() by the composing thread; the others by any, and they do not
// block. Ownership: borrows what its options name; owns its threads, which yield to programs.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "memory/buffer/object_io.h"
#include "memory/buffer/region_identity.h"
#include "memory/tiers/actor.h"
#include "service/attachment/client_message.h"
#include "service/gathering/chunk_codec.h"
#include "service/gathering/gathering_options.h"
#include "service/gathering/grid_shelf.h"
#include "service/gathering/packed_watch.h"

namespace cairn::node {

class ChunkUnpacker {
 public:
  // Datasets that are watched at a time; of more, the one that has rested longest is forgotten.
  static constexpr std::size_t kDatasetsMax = 64;
  static constexpr std::size_t kThreads = 2;
  // Chunks of one piece of work at most, and bytes that are read at once for them.
  static constexpr std::size_t kBatchChunks = 16;
  static constexpr std::uint64_t kReadBytesMax = std::uint64_t{4} << 20;

  ChunkUnpacker(const GatheringOptions& options, GridShelf& grids)
      : with_(options), grids_(grids) {}
  ~ChunkUnpacker() { stop(); }
  ChunkUnpacker(const ChunkUnpacker&) = delete;
  ChunkUnpacker& operator=(const ChunkUnpacker&) = delete;

  void start();
  void stop();
  void on_packed_read(const message::PackedRead& read, Owner reader);
  // Chunks of the dataset that were unpacked ahead, of the file's present version.
  std::uint64_t unpacked_of(ObjectIndex file, const std::array<std::uint64_t, 2>& token) const;
  // Chunks of all datasets since the start, also of those that are followed no more.
  std::uint64_t unpacked_in_all() const;
  // Until all that is waiting now is unpacked or given up. For tests.
  void await_quiet();

 private:
  using Clock = std::chrono::steady_clock;
  enum class Trust : std::uint8_t { kUnproven, kProven, kRefuted };

  struct Dataset {
    Dataset(ObjectIndex of, const ObjectKey& of_key, const FileVersion& of_version,
            const arrays::PackedArray& array)
        : file(of), key(of_key), version(of_version), watch(array) {}

    const ObjectIndex file;
    const ObjectKey key;
    const FileVersion version;
    PackedWatch watch;
    Owner reader;         // has the file open,
    int descriptor = -1;  // under this number
    Clock::time_point read_at;
    Trust trust = Trust::kUnproven;
    std::shared_ptr<const std::vector<arrays::PackedChunk>> table;  // null: not read yet
  };
  using DatasetPtr = std::shared_ptr<Dataset>;

  // What a thread works on: a copy of what others change.
  struct Work {
    DatasetPtr dataset;
    std::vector<std::uint64_t> chunks;
    Owner reader;
    int descriptor = -1;
    Trust trust = Trust::kUnproven;
    std::shared_ptr<const std::vector<arrays::PackedChunk>> table;
    std::vector<std::uint16_t> programs;
  };
  // A thread's own.
  struct Worker;

  DatasetPtr dataset_of(const message::PackedRead& read, const ObjectKey& key,
                        const FileVersion& version);
  DatasetPtr next_dataset() const;
  Work take(const DatasetPtr& dataset, std::size_t most) const;
  std::size_t chunks_in_budget(const Dataset& dataset) const;
  void work();
  void unpack(Worker& worker, Work& work);
  bool is_current(const Dataset& dataset) const;
  StoreStatus status_of(const Dataset& dataset, std::uint64_t chunk) const;
  bool is_kept(const StoreStatus& region) const;
  bool read_region(Worker& worker, const StoreStatus& region, std::span<std::byte> to);
  bool find_table(Worker& worker, Work& work);
  bool prove(Worker& worker, const ObjectAccess& file, Work& work);
  void unpack_batch(Worker& worker, const ObjectAccess& file, const Work& work);
  bool make(Worker& worker, const Work& work, std::uint64_t chunk,
            std::span<const std::byte> packed);
  void keep(Worker& worker, const Work& work, std::uint64_t chunk);

  const GatheringOptions with_;
  GridShelf& grids_;  // in which boxes arrays are read
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<DatasetPtr> datasets_;    // the latest first
  std::set<std::uint16_t> programs_;  // slots of those that have ever told of a read
  std::size_t busy_ = 0;              // threads
  std::atomic<std::uint64_t> unpacked_{0};
  std::atomic<bool> is_stopping_{false};  // also a batch under way ends soon
  std::vector<std::thread> threads_;
};

}  // namespace cairn::node
