// SPDX-License-Identifier: Apache-2.0
// Follows stream by stream what programs read and will read next: events in, blocks to fetch out. A
// stream is one open description of a file in one process. All those of a description end when it
// does, whichever process closes it last: a parent that opens files for its children learns nothing
// of their ends.
//
// Every stream has predictors of its own (policy/prefetch/chooser.h) and a distance of its own
// (policy/prefetch/lookahead.h); what streams teach each other is kept by file and for the node.
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

#include "memory/tiers/node_memory.h"
#include "policy/prefetch/chooser.h"
#include "policy/prefetch/knowledge.h"
#include "policy/prefetch/lookahead.h"
#include "service/learning/access_observer.h"
#include "service/learning/order_search.h"

namespace cairn::node {

// Blocks side by side that one stream wants, and from where.
struct WantedBlocks {
  std::uint64_t stream = 0;  // a number of ReadStreams
  ObjectIndex object = ObjectIndex::kNone;
  Owner owner;  // the reader
  std::int32_t descriptor = -1;
  BlockNumber first{};
  unsigned count = 0;
  std::uint8_t predictor = 0;
  bool is_below = false;      // they are in file tiers, and are to be brought up
  bool is_for_below = false;  // they are wanted so late that a file tier is good enough
  bool is_cold = false;       // they are to leave RAM for hotter ones
};

class ReadStreams {
 public:
  // The counter of heat-driven fetches, beside those of the predictors.
  static constexpr std::uint8_t kByHeat = FetchJournal::kPredictorsMax - 1;
  // More streams than that at once: the one that was used longest ago is forgotten.
  static constexpr std::size_t kStreamsMax = 4096;

  // `orders`: may be null.
  explicit ReadStreams(const NodeMemory& memory, DeclaredOrders* orders = nullptr,
                       PathOf path_of = {})
      : memory_(memory), orders_(orders), path_of_(std::move(path_of)) {}

  // Hears once of each stream that goes through an order once more. Before the first
  // event; may be empty.
  using FoundRepeated = std::function<void(const ToldAccess& told, RepeatedOrder order)>;
  void set_found_repeated(FoundRepeated found) { found_repeated_ = std::move(found); }
  // A predictor for each stream besides those of the table. Before the first event; may be null.
  void set_supply(PredictorSupply* supply) { supply_ = supply; }
  // Where what is learned of files is kept for the next node. Before the first event; may be null.
  void keep_in(KnowledgeShelf* kept) { node_.set_shelf(kept); }
  // Puts the knowledge of all files there.
  void put_away() const { node_.put_away(); }
  void take(const ToldAccess& told);
  // The soonest that is in no tier, of all streams in turn, at most `count_max` blocks. False when
  // nothing is wanted.
  bool next(unsigned count_max, WantedBlocks* wanted);
  // The same of what is wanted after that, at most `blocks_max` blocks ahead of the reader, or has
  // no room in RAM for now. Only of streams that were late although they are read as far ahead as
  // RAM is for.
  bool next_beyond(unsigned count_max, std::uint32_t blocks_max, WantedBlocks* wanted);
  // More blocks that lie in file tiers are to be brought up: RAM has room.
  void set_brings_up(bool brings_up) { brings_up_ = brings_up; }
  // A part of a file is wanted for its score, in RAM or (`is_for_below`) in a file tier. Nothing
  // happens unless a program has the file open.
  void want_hot(ObjectIndex object, BlockRun run, bool is_for_below);
  // It could not be fetched: again later, or (`for_good`) never of this stream.
  void give_back(const WantedBlocks& wanted, bool for_good);
  // Something of the stream was fetched.
  void note_fetched(std::uint64_t stream);
  bool wants_any() const { return !active_.empty() || !beyond_.empty(); }
  // Blocks that were fetched for streams like these left before their use.
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
    FileKnowledgePtr knowledge;        // not null together with it
    Lookahead lookahead;
    BlockRun last{-1, 0};
    std::deque<BlockRun> wanted;  // what is foreseen, the soonest first
    std::deque<BlockRun> needed;  // what the program says that it needs
    std::deque<BlockRun> beyond;  // what is foreseen for file tiers, the soonest first
    std::deque<BlockRun> hot;     // wanted for its score, the hottest first
    std::deque<BlockRun> warm;    // the same for file tiers
    std::uint8_t predictor = 0;   // that foresees it
    std::uint32_t hits_in_a_row = 0;
    std::uint32_t blocks_per_read = 1;
    std::uint32_t blocks_read_on = 0;  // since `beyond` was looked for
    OrderSearch order;  // its path: of a file of which an order is declared, while it is followed
    std::uint64_t used = 0;
    unsigned tries = 0;        // in a row that found no room
    bool is_repeated = false;  // it goes through an order once more, and that was told
    bool is_silenced = false;  // by a rule, or because its file cannot be opened
    bool is_listed = false;    // in active_
    bool is_listed_beyond = false;

    void forget_wanted() {
      wanted.clear();
      needed.clear();
      beyond.clear();
      hot.clear();
      warm.clear();
    }
  };

  Stream* stream_of(const ToldAccess& told);
  Stream& open(const ToldAccess& told);
  void close(const ToldAccess& told);
  using Streams = std::unordered_map<std::uint64_t, std::unique_ptr<Stream>>;
  Streams::iterator end(Streams::iterator stream);
  Chooser& chooser_of(Stream& stream);
  void advise(Stream& stream, const AccessEvent& event);
  void read(Stream& stream, const ToldAccess& told);
  void look_for_repeated(Stream& stream, const ToldAccess& told);
  void look_for_order(Stream& stream, const ToldAccess& told, BlockRun run);
  static void judge(Stream& stream, AccessKind kind, BlockRun run);
  void foresee(Stream& stream);
  void read_on(Stream& stream, std::uint64_t number, std::uint32_t blocks);
  void look_beyond(Stream& stream, std::uint32_t blocks_max);
  void predict(Stream& stream, std::size_t runs_max, std::uint64_t blocks_max,
               std::deque<BlockRun>* into);
  void list_beyond(Stream& stream, std::uint64_t number);
  static WantedBlocks wanted_of(const Stream& stream, std::uint64_t number, BlockRun run,
                                std::uint8_t predictor);
  void drop_ended(std::deque<std::uint64_t>* listed) const;
  void collect_needed(Stream& stream);
  void list(Stream& stream, std::uint64_t number);
  // Where a block that is wanted is: nowhere, in a file tier, or where it may stay.
  enum class Place : std::uint8_t { kStore, kBelow, kGoodEnough };
  // Where a file tier is good enough, where only as long as RAM is short, and where never.
  enum class Aim : std::uint8_t { kBelow, kSoon, kMemory };
  Place place_of(const Stream& stream, std::int64_t block, Aim aim) const;
  BlockRun take_run(const Stream& stream, std::deque<BlockRun>* runs, unsigned count_max, Aim aim,
                    Place* place) const;
  void make_room_for_one();

  const NodeMemory& memory_;
  DeclaredOrders* const orders_;
  const PathOf path_of_;
  FoundRepeated found_repeated_;
  PredictorSupply* supply_ = nullptr;
  NodeKnowledge node_;
  Streams streams_;
  // The streams of each open description.
  std::unordered_multimap<std::uint32_t, std::uint64_t> of_description_;
  std::deque<std::uint64_t> active_;  // streams that want something
  std::deque<std::uint64_t> beyond_;  // those that may want something for file tiers
  std::vector<ObjectIndex> closed_;
  std::vector<BlockRun> room_;  // for predictions
  std::uint64_t events_ = 0;
  bool brings_up_ = false;
};

}  // namespace cairn::node
