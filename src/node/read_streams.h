// SPDX-License-Identifier: Apache-2.0
// What programs are reading, stream by stream, and what they will read next: events in, blocks that
// are to be fetched out. A stream is one open description of a file in one process. All those of a
// description end when it does, whichever process closes it last: a parent that opens files for its
// children is not told of their ends.
//
// Every stream has predictors of its own (prefetch/chooser.h) and a distance of its own
// (prefetch/lookahead.h); what streams teach each other is kept by file and for the node.
//
// Thread safety: none. Ownership: borrows the memory, whose directory says what is resident.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "node/event_reader.h"
#include "node/order_book.h"
#include "prefetch/chooser.h"
#include "prefetch/knowledge.h"
#include "prefetch/lookahead.h"

namespace cairn::node {

// Blocks side by side that one stream wants, and from where.
struct WantedBlocks {
  std::uint64_t stream = 0;  // a number of ReadStreams
  ObjectIndex object = ObjectIndex::kNone;
  Owner owner;  // who reads it
  std::int32_t descriptor = -1;
  BlockNumber first{};
  unsigned count = 0;
  std::uint8_t predictor = 0;
  bool is_below = false;  // they are in file tiers, and are to be brought up
};

class ReadStreams {
 public:
  // More streams than that at once: the one that was used longest ago is forgotten.
  static constexpr std::size_t kStreamsMax = 4096;

  // The path of the file that a process accesses; empty when it is not known.
  using PathOf = std::function<std::string(const ToldAccess& told)>;

  // `orders`: may be null.
  explicit ReadStreams(const NodeMemory& memory, OrderBook* orders = nullptr, PathOf path_of = {})
      : memory_(memory), orders_(orders), path_of_(std::move(path_of)) {}

  void take(const ToldAccess& told);
  // The soonest that is in no tier, of all streams in turn, at most `count_max` blocks. False when
  // nothing is wanted.
  bool next(unsigned count_max, WantedBlocks* wanted);
  // More blocks that lie in file tiers are to be brought up: RAM has room.
  void set_brings_up(bool brings_up) { brings_up_ = brings_up; }
  // It could not be fetched: again later, or (`for_good`) never of this stream.
  void give_back(const WantedBlocks& wanted, bool for_good);
  // Something of the stream was fetched.
  void note_fetched(std::uint64_t stream);
  bool wants_any() const { return !active_.empty(); }
  // What was fetched for streams like these left before it was used.
  void note_evicted_unused();
  // Processes have died: what they read, and what they were the last to hold, is not waited for.
  void forget_dead();
  // Calls forget(ObjectIndex) for each object of which a stream has ended since the last call.
  template <typename Forget>
  void take_closed(Forget&& forget) {
    for (const ObjectIndex object : closed_) forget(object);
    closed_.clear();
  }
  std::size_t size() const { return streams_.size(); }

 private:
  struct Stream {
    ObjectIndex object = ObjectIndex::kNone;
    Owner owner;
    std::int32_t descriptor = -1;
    std::unique_ptr<Chooser> chooser;  // null until something was not in RAM
    Lookahead lookahead;
    BlockRun last{-1, 0};
    std::deque<BlockRun> wanted;  // what is foreseen, the soonest first
    std::deque<BlockRun> needed;  // what the program says that it needs
    std::uint8_t predictor = 0;   // who foresees it
    std::uint32_t hits_in_a_row = 0;
    std::string declared_path;     // of a file of which an order is declared, while it is followed
    unsigned reads_looked_at = 0;  // for where in a declared order the stream begins
    std::uint64_t used = 0;
    unsigned tries = 0;        // in a row that found no room
    bool is_silenced = false;  // by a rule, or because its file cannot be opened
    bool is_listed = false;    // in active_
  };

  Stream* stream_of(const ToldAccess& told);
  Stream& open(const ToldAccess& told);
  void close(const ToldAccess& told);
  using Streams = std::unordered_map<std::uint64_t, std::unique_ptr<Stream>>;
  Streams::iterator end(Streams::iterator stream);
  Chooser& chooser_of(Stream& stream);
  void advise(Stream& stream, const AccessEvent& event);
  void read(Stream& stream, const ToldAccess& told);
  void look_for_order(Stream& stream, const ToldAccess& told, BlockRun run);
  void judge(Stream& stream, AccessKind kind, BlockRun run) const;
  void foresee(Stream& stream, std::uint32_t blocks_per_read);
  void collect_needed(Stream& stream);
  void list(Stream& stream, std::uint64_t number);
  // Where a block that is wanted is: nowhere, in a file tier, or in RAM.
  enum class Place : std::uint8_t { kStore, kBelow, kMemory };
  Place place_of(const Stream& stream, std::int64_t block) const;
  BlockRun take_run(const Stream& stream, std::deque<BlockRun>* runs, unsigned count_max,
                    Place* place) const;
  void make_room_for_one();

  const NodeMemory& memory_;
  OrderBook* const orders_;
  const PathOf path_of_;
  NodeKnowledge node_;
  Streams streams_;
  // The streams of each open description.
  std::unordered_multimap<std::uint32_t, std::uint64_t> of_description_;
  std::deque<std::uint64_t> active_;  // streams that want something
  std::vector<ObjectIndex> closed_;
  std::vector<BlockRun> room_;  // for predictions
  std::uint64_t events_ = 0;
  bool brings_up_ = false;
};

}  // namespace cairn::node
