// SPDX-License-Identifier: Apache-2.0
// Fetches what programs will read before they ask for it: learns from their accesses
// (service/learning/read_streams.h) and reads from the backing store into RAM.
//
// Demand goes first: while a program waits for the backing store, nothing is fetched, for a limited
// time; and each fetch is one operation of at most 1 MiB, so that nobody waits long behind it. What
// waits in RAM for its use is bounded to a part of RAM, unless there is plenty of room.
//
// What a program that reads in bursts will want later than that waits in the fastest file tier with
// room, in the same part of it, and comes up to RAM when its turn is near: through RAM on its way
// down, 1 MiB at a time.
//
// Thread safety: start() and stop() by the composing thread; on_accesses(), on_deaths() and
// carry_by_heat() by the thread of the event reader; the rest by any.
// Ownership: borrows what its options name; owns its threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "base/node_config.h"
#include "memory/buffer/fetch_ahead.h"
#include "memory/tiers/actor.h"
#include "service/fetching/service_open.h"
#include "service/fetching/source_files.h"
#include "service/learning/knowledge_directory.h"
#include "service/learning/read_streams.h"
#include "service/treatment/buffered_directories.h"
#include "service/write_back/flusher.h"
#include "service/write_back/store_files.h"

namespace cairn::node {

// The parts that the prefetcher works with; all of them outlive it.
struct PrefetcherOptions {
  const NodeConfig& config;
  const NodeMemory& memory;
  Owner self;  // the service as the owner of locks and buckets
  StoreFiles& files;
  Flusher& flusher;
  const BufferedDirectories& directories;
  DeclaredOrders& orders;
  StreamTable& streams;
  std::shared_mutex& fetches;  // held shared while something is fetched
};

class Prefetcher final : public AccessObserver {
 public:
  static constexpr unsigned kWorkers = 2;

  explicit Prefetcher(const PrefetcherOptions& options);
  ~Prefetcher() { stop(); }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // A predictor that is not built in takes part under this name. Before start(); outlives this.
  void add(PredictorSupply& supply, std::string name) {
    streams_.set_supply(&supply);
    supplied_name_ = std::move(name);
  }
  // Is told of streams that go through an order once more. Before start().
  void set_found_repeated(ReadStreams::FoundRepeated found) {
    streams_.set_found_repeated(std::move(found));
  }
  // These orders are declared just now: their first files are wanted at once.
  void note_declared(DeclaredOrders& fresh);
  void start();
  void stop();

  void on_accesses(std::span<const ToldAccess> batch) override;
  // The reads of the dead are not expected any more.
  void on_deaths(const StreamEnds& ends) override;
  // Carries out a decision of a HeatPlacer: a part of a file that a program has open is to be in
  // this tier.
  void carry_by_heat(ObjectIndex object, std::uint64_t offset, std::uint64_t bytes, TierId to,
                     bool is_promotion);
  // Counts of the orders that are kept between nodes; nothing where none are kept.
  std::optional<KnowledgeDirectory::Counts> kept_orders();

  // The name of the predictor with this number in FetchJournal; empty when there is none.
  std::string predictor_name(unsigned number) const;

 private:
  enum class Outcome : std::uint8_t { kDone, kNoRoom, kBroken };
  void work(unsigned worker);
  bool work_once(Actor& actor, std::unique_lock<std::mutex>& lock);
  bool pick(WantedBlocks* wanted, std::string* path);
  void note_at_work(const WantedBlocks& wanted);
  void note_done(const WantedBlocks& wanted);
  Outcome fetch(Actor& actor, WantedBlocks* wanted);
  // False when the descriptor is no longer that file's.
  bool fetch_from(Actor& actor, const WantedBlocks& wanted, SourceFile& source,
                  const StoreStatus& status, Fetched* fetched);
  void move(Actor& actor, const WantedBlocks& wanted, unsigned count, TierId target,
            PlacementReason reason);
  void forget_sources(const StreamEnds& ends);
  void want_files_after(const ToldAccess& told);
  void want_files(std::vector<std::string> paths);
  void want_first_files(DeclaredOrders& orders);
  Outcome fetch_file(Actor& actor, const std::string& path, std::span<const std::uint16_t> slots);
  void give_back_file(std::string path, Outcome outcome);
  void put_away();
  bool has_room() const;
  bool has_budget() const;
  std::uint32_t blocks_beyond() const;
  std::optional<TierId> tier_below() const;

  const NodeConfig& config_;
  const NodeMemory& memory_;
  const Owner self_;
  StoreFiles& store_files_;
  Flusher& flusher_;
  const BufferedDirectories& directories_;
  std::string supplied_name_;  // of a predictor that is not built in; empty: there is none
  SourceFiles sources_;

  DeclaredOrders& orders_;  // of the thread that calls on_accesses(), once it has begun

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<KnowledgeDirectory> kept_;
  ReadStreams streams_;
  std::vector<BlocksAtWork> at_work_;           // by the workers, one each
  std::deque<WantedBlocks> cold_;               // what hotter segments displace from RAM
  std::deque<std::string> files_;               // that a declared order says are opened soon
  std::unordered_set<std::string> files_seen_;  // that are in it, or were lately
  bool awaits_reader_ = false;                  // of files that were declared just now
  unsigned file_tries_ = 0;                     // in a row that found no room
  // Names of files that were fetched: their reader may close them before a look in /proc finds the
  // name.
  std::map<ObjectKey, std::string> names_;
  std::set<std::uint16_t> slots_;     // that have ever told something
  std::uint64_t evicted_unused_ = 0;  // bytes, when last looked at
  std::atomic<bool> stopping_{false};
  std::shared_mutex& fetching_;
  std::vector<std::thread> threads_;
};

}  // namespace cairn::node
