// SPDX-License-Identifier: Apache-2.0
// The order in which a file was read, over its streams and epochs: a plain vector of runs that can
// be kept and restored.
//
// An entry is a stretch of blocks read in one go or in reads that adjoin each other. Every stream
// writes into places of its own, so that the reads of others do not get between. An entry with no
// blocks is a link: `first` is the position where the chain goes on, or -1 at its end.
//
// Bounds: entries_max, and the budget. A full history records nothing more, so that the beginning
// of a long epoch can be replayed in the next one; if little of it is replayed, it is forgotten.
// And so is one of a file that is read in no order, whatever its size: it would grow with each
// read.
//
// Thread safety: none. Ownership: borrows the budget.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "policy/prefetch/knowledge_budget.h"
#include "policy/prefetch/predictor.h"

namespace cairn {

class AccessHistory {
 public:
  using Position = std::uint32_t;
  static constexpr Position kNowhere = UINT32_MAX;

  // Requires: entries_max < 2^31.
  AccessHistory(KnowledgeBudget& budget, std::uint32_t entries_max)
      : budget_(budget), entries_max_(entries_max) {
    CAIRN_CHECK(entries_max <= INT32_MAX);
  }
  ~AccessHistory() { forget(); }
  AccessHistory(const AccessHistory&) = delete;
  AccessHistory& operator=(const AccessHistory&) = delete;

  // Where a stretch that begins with this block was written, or kNowhere; of several the first,
  // unless HistoryWriter::prefer_last() has told otherwise.
  Position find(std::int64_t first) const;
  // Requires: a position of a stretch.
  const BlockRun& at(Position position) const {
    CAIRN_DCHECK(position < entries_.size());
    return entries_[position];
  }
  // The stretch behind that, or kNowhere.
  Position after(Position position) const;

  // The stretch is read instead of the one at the position, from now on. Requires: a position of a
  // stretch; blocks in `run`.
  void replace(Position position, BlockRun run);

  // The reads from the beginning of the record on, until it came to its end or to its first stretch
  // again, if they lead through the position; else the reads from the position on.
  RepeatedOrder lap_through(Position position) const;

  // Positions hold as long as this does not change.
  std::uint32_t generation() const { return generation_; }
  bool is_full() const { return is_full_; }
  // A read was as the history had it, or it was not.
  enum class Replay : std::uint8_t {
    kRight,
    kWrong,  // though it knows the block
    kUnknown
  };
  void note_replay(Replay replay);
  void forget();

  const std::vector<BlockRun>& entries() const { return entries_; }
  // Takes what entries() once gave; whatever is not in order in it is left out. Returns: whether
  // there was room.
  bool restore(const std::vector<BlockRun>& entries);

 private:
  friend class HistoryWriter;
  static constexpr std::size_t kEntriesFirst = 64;
  static constexpr std::uint64_t kMissesMin = 256;
  static_assert((kEntriesFirst & (kEntriesFirst - 1)) == 0, "the index is masked");
  static constexpr std::size_t kBytesPerEntry = sizeof(BlockRun) + 2 * sizeof(Position);
  static constexpr BlockRun kEnd{-1, 0};

  // From a stretch on, until `seen` is in it and it ends.
  RepeatedOrder lap_from(Position first, Position seen) const;
  // Appends places, all of them ends. Returns: the first of them, or kNowhere.
  Position reserve(std::uint32_t places);
  bool grow(std::size_t entries);
  void add_to_index(Position position);
  void index_all();

  KnowledgeBudget& budget_;
  const std::uint32_t entries_max_;
  std::vector<BlockRun> entries_;
  std::vector<Position> index_;  // by the hash of `first`; open addressing, at most half full
  std::size_t bytes_ = 0;        // reserved
  std::uint32_t generation_ = 0;
  std::uint32_t stretches_ = 0;
  std::size_t replaced_ = 0;  // since all were put into the index
  // Since its use was looked at last.
  std::uint64_t reads_ = 0;
  std::uint64_t replays_ = 0;
  std::uint64_t misses_ = 0;
  bool is_full_ = false;
};

// Where a stream writes into the history.
class HistoryWriter {
 public:
  explicit HistoryWriter(AccessHistory& history) : history_(history) {}
  void append(BlockRun run);
  // The stretch appended last is found instead of older ones that begin with the same block.
  void prefer_last();
  // The record goes on at `position`, which is there already; the next append() begins anew.
  void go_on_at(AccessHistory::Position position);

 private:
  static constexpr std::uint32_t kPlacesFirst = 8;
  static constexpr std::uint32_t kPlacesMax = 256;
  static constexpr std::uint32_t kStretchMax = 1U << 30;

  bool reserve_place();

  AccessHistory& history_;
  std::uint32_t generation_ = 0;
  std::uint32_t places_ = kPlacesFirst;  // to reserve next
  AccessHistory::Position next_ = 0;     // place to write
  AccessHistory::Position end_ = 0;      // of the places reserved
  AccessHistory::Position last_ = 0;     // written
  bool is_open_ = false;                 // what is appended follows `last_`
};

}  // namespace cairn
