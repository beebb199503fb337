// SPDX-License-Identifier: Apache-2.0
// Follows stream by stream what programs read and will read next: events in, blocks to fetch out.
// The table of streams (service/learning/stream_table.h) says which stream an access belongs to and
// when the stream ends.
//
// Every stream has predictors of its own (policy/prefetch/chooser.h) and a distance of its own
// (policy/prefetch/lookahead.h); what streams teach each other is kept by file and for the node.
//
// Thread safety: none; next(), next_beyond(), give_back() and note_fetched() may be called by other
// threads than that of the event reader, under the lock of its caller. Ownership: borrows the table
// of streams, and the memory, whose directory says what is resident.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "policy/prefetch/chooser.h"
#include "policy/prefetch/knowledge.h"
#include "policy/prefetch/lookahead.h"
#include "service/learning/access_observer.h"
#include "service/learning/order_search.h"
#include "service/learning/stream_table.h"

namespace cairn::node {

struct ReadStream;

// Blocks side by side that one stream wants, and from where.
struct WantedBlocks {
  std::weak_ptr<ReadStream> stream;  // expired when it has ended
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

// Blocks of a file that a worker is fetching now.
struct BlocksAtWork {
  ObjectIndex object = ObjectIndex::kNone;
  BlockRun run;
};

// What ReadStreams keeps of a stream.
struct ReadStream : std::enable_shared_from_this<ReadStream> {
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
  OrderSearch order;                 // follows the declared order of the file, if it has one
  unsigned tries = 0;                // in a row that found no room
  bool is_repeated = false;          // it goes through an order once more, and that was told
  bool is_silenced = false;          // by a rule, or because its file cannot be opened
  bool is_listed = false;            // among the streams that want something
  bool is_listed_beyond = false;

  void forget_wanted() {
    wanted.clear();
    needed.clear();
    beyond.clear();
    hot.clear();
    warm.clear();
  }
};

class ReadStreams {
 public:
  // The counter of heat-driven fetches, beside those of the predictors.
  static constexpr std::uint8_t kByHeat = FetchJournal::kPredictorsMax - 1;

  // `orders`: may be null.
  ReadStreams(const NodeMemory& memory, StreamTable& streams, DeclaredOrders* orders = nullptr,
              PathOf path_of = {})
      : memory_(memory), orders_(orders), path_of_(std::move(path_of)), streams_(streams) {}

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
  // Streams have ended: nothing is wanted for them any more.
  void forget(const StreamEnds& ends);
  // The soonest that is in no tier, of all streams in turn, at most `count_max` blocks. False when
  // nothing is wanted. The piece that follows one of `at_work` waits for its end: file systems and
  // disks read ahead for a reader that goes in order, not for two readers that take turns.
  bool next(unsigned count_max, std::span<const BlocksAtWork> at_work, WantedBlocks* wanted);
  // The same of what is wanted after that, at most `blocks_max` blocks ahead of the reader, or has
  // no room in RAM for now. Only of streams that were late although they are read as far ahead as
  // RAM is for, and not of a file that somebody is `at_work` on.
  bool next_beyond(unsigned count_max, std::uint32_t blocks_max,
                   std::span<const BlocksAtWork> at_work, WantedBlocks* wanted);
  // More blocks that lie in file tiers are to be brought up: RAM has room.
  void set_brings_up(bool brings_up) { brings_up_ = brings_up; }
  // A part of a file is wanted for its score, in RAM or (`is_for_below`) in a file tier. Nothing
  // happens unless a program has the file open.
  void want_hot(ObjectIndex object, BlockRun run, bool is_for_below);
  // It could not be fetched: again later, or (`for_good`) never of this stream.
  void give_back(const WantedBlocks& wanted, bool for_good);
  // Something of the stream was fetched.
  static void note_fetched(const WantedBlocks& wanted);
  bool wants_any() const { return !active_.empty() || !beyond_.empty(); }
  // Blocks that were fetched for streams like these left before their use.
  void note_evicted_unused();
  std::size_t size() const { return streams_.size(); }

 private:
  using Stream = ReadStream;
  using Listed = std::deque<std::weak_ptr<Stream>>;

  Stream* stream_of(const ToldAccess& told);
  Stream& begin(const ToldAccess& told);
  Chooser& chooser_of(Stream& stream);
  void advise(Stream& stream, const AccessEvent& event);
  void read(Stream& stream, const ToldAccess& told);
  void look_for_repeated(Stream& stream, const ToldAccess& told);
  void look_for_order(Stream& stream, const ToldAccess& told, BlockRun run);
  static void judge(Stream& stream, AccessKind kind, BlockRun run);
  void foresee(Stream& stream);
  void read_on(Stream& stream, std::uint32_t blocks);
  void look_beyond(Stream& stream, std::uint32_t blocks_max);
  void predict(Stream& stream, std::size_t runs_max, std::uint64_t blocks_max,
               std::deque<BlockRun>* into);
  static WantedBlocks wanted_of(Stream& stream, BlockRun run, std::uint8_t predictor);
  void collect_needed(Stream& stream);
  static bool follows(ObjectIndex object, const BlockRun& run,
                      std::span<const BlocksAtWork> at_work);
  void list(Stream& stream);
  void list_beyond(Stream& stream);
  static void enter(Stream& stream, Listed* listed);
  static std::shared_ptr<Stream> take_first(Listed* listed);
  // Where a block that is wanted is: nowhere, in a file tier, or where it may stay.
  enum class Place : std::uint8_t { kStore, kBelow, kGoodEnough };
  // Where a file tier is good enough, where only as long as RAM is short, and where never.
  enum class Aim : std::uint8_t { kBelow, kSoon, kMemory };
  Place place_of(const Stream& stream, std::int64_t block, Aim aim) const;
  BlockRun take_run(const Stream& stream, std::deque<BlockRun>* runs, unsigned count_max, Aim aim,
                    Place* place) const;

  const NodeMemory& memory_;
  DeclaredOrders* const orders_;
  const PathOf path_of_;
  FoundRepeated found_repeated_;
  PredictorSupply* supply_ = nullptr;
  NodeKnowledge node_;
  StreamSlot<Stream> streams_;
  Listed active_;               // streams that want something
  Listed beyond_;               // those that may want something for file tiers
  std::vector<BlockRun> room_;  // for predictions
  bool brings_up_ = false;
};

}  // namespace cairn::node
