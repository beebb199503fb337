// SPDX-License-Identifier: Apache-2.0
// Gathers chunks of arrays before they are read: the rows of a chunk and of its ghost zone, which
// lie far apart in the file, become one region of the tiers, which a program reads with one copy.
// (ARCHIE's readers do so ahead of the computation, section III-E; its chunks lie in files.)
//
// Which ones follows from the boxes that programs read (ArrayWatch). Once a box of an array has
// been read twice, a box that was read and is no region yet is gathered as well, while RAM has
// plenty of room: the program may come back to it. The grid in which an array is read goes into the
// node's memory, for those who read parts of chunks (memory/tiers/array_board.h), and for the
// service that comes after this one, if it is killed; and on a shelf, for arrays that look like
// this one, now and in later runs.
//
// The bytes come from the file's blocks in the tiers. Those that are in none are not fetched here,
// where they would be read in the order of the chunks: the connector has the slabs of the file
// fetched that the program comes to (policy/arrays/slab_ahead.h), and a chunk waits for its rows
// for some seconds. A region is kept only if the file has had one version all the time
// (memory/buffer/region_identity.h).
//
// Thread safety: start() and stop() by the composing thread; on_array_read() by any, and it does
// not block. Ownership: borrows what its options name; owns its thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "memory/buffer/object_io.h"
#include "memory/buffer/region_identity.h"
#include "memory/tiers/actor.h"
#include "policy/arrays/row_reads.h"
#include "service/attachment/client_message.h"
#include "service/fetching/source_files.h"
#include "service/gathering/array_watch.h"
#include "service/gathering/chunk_unpacker.h"
#include "service/gathering/gathering_options.h"
#include "service/gathering/grid_shelf.h"

namespace cairn::node {

class ChunkGatherer {
 public:
  // Arrays that are watched at a time; of more, the one that has rested longest is forgotten.
  static constexpr std::size_t kArraysMax = 64;
  // Chunks that wait to be gathered; more are left to their readers.
  static constexpr std::size_t kChunksMax = 256;
  // A chunk is gathered in memory of the service.
  static constexpr std::uint64_t kChunkBytesMax = arrays::kGatheredBytesMax;

  explicit ChunkGatherer(const GatheringOptions& options)
      : with_(options), grids_(options.remember_directory), unpacker_(options, grids_) {}
  ~ChunkGatherer() { stop(); }
  ChunkGatherer(const ChunkGatherer&) = delete;
  ChunkGatherer& operator=(const ChunkGatherer&) = delete;

  void start();
  void stop();
  void on_array_read(const message::ArrayRead& read, Owner reader);
  // Arrays that are packed in their file are not gathered, but unpacked.
  ChunkUnpacker& unpacker() { return unpacker_; }
  const ChunkUnpacker& unpacker() const { return unpacker_; }
  // A user says in what chunks programs will read the array, of the file's present version.
  void expect(ObjectIndex file, const arrays::FileArray& array, const arrays::ChunkGrid& grid);
  // The grids that the array's boxes have shown, the present one first; none where they have not,
  // or nobody reads it.
  std::vector<arrays::ChunkGrid> grids_of(ObjectIndex file, const arrays::FileArray& array) const;
  // Until all that is waiting now is gathered or given up. For tests.
  void await_quiet();

 private:
  using Clock = std::chrono::steady_clock;

  // A box of a file's array that is to become a region.
  struct Chunk {
    ObjectIndex file = ObjectIndex::kNone;
    FileVersion version;
    arrays::FileArray array;
    arrays::Box box;
    Owner reader;          // has the file open,
    int descriptor = -1;   // under this number
    bool was_read = true;  // by the program, which may come back to it
    Clock::time_point look_at;
    Clock::duration pause{};  // until the look after that
    Clock::time_point give_up_at;
    std::optional<std::uint64_t> awaited;  // a block that was missing
  };
  struct Watched {
    ObjectIndex file;
    FileVersion version;
    ArrayWatch watch;
  };

  void publish_grid(const Chunk& read, const ArrayWatch& watch) const;
  std::optional<arrays::ChunkGrid> published_grid(ObjectIndex file,
                                                  const arrays::FileArray& array) const;
  ArrayWatch& watch_of(ObjectIndex file, const FileVersion& version,
                       const arrays::FileArray& array);
  void want(Chunk chunk);
  void forget(const Chunk& read);
  void work();
  void await_chunk(std::unique_lock<std::mutex>& lock);
  bool is_worth_gathering(const Chunk& chunk) const;
  bool has_come(Chunk* waiting) const;
  std::uint64_t unread_bytes() const;
  void note_gathered(const Chunk& chunk);
  void gather(Actor& actor, const Chunk& chunk);
  SourceFile* source_of(const Chunk& chunk);
  bool read_rows(const ObjectAccess& access, const Chunk& chunk, std::byte* to);
  bool is_current(const Chunk& chunk) const;

  const GatheringOptions with_;
  GridShelf grids_;
  ChunkUnpacker unpacker_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Watched> watched_;  // the latest first
  std::deque<Chunk> wanted_;    // those that were read already come last
  std::deque<Chunk> unread_;    // gathered ahead, the oldest first
  bool is_busy_ = false;
  Chunk at_work_;  // while it is busy
  bool is_stopping_ = false;
  // Nobody needs the chunk at work any more. Set under the lock, read without it.
  std::atomic<bool> is_given_up_{false};
  std::thread thread_;

  // The thread's own: the file that was gathered from last, while chunks are waiting.
  ObjectKey source_key_;
  SourceFilePtr source_;
};

}  // namespace cairn::node
