// SPDX-License-Identifier: Apache-2.0
// All that learns from the programs' accesses, wired to each other and to the prefetcher.
//
// Thread safety: what start() follows is constant afterwards; each learner says what holds for it.
// Ownership: owns the event reader and the learners; borrows the rest.
#pragma once

#include <memory>

#include "base/node_config.h"
#include "memory/tiers/node_memory.h"
#include "policy/replacement/replacement_policy.h"
#include "service/attachment/client_table.h"
#include "service/capacity/placement_engine.h"
#include "service/capacity/read_balancer.h"
#include "service/fetching/prefetcher.h"
#include "service/learning/event_reader.h"
#include "service/learning/heat_table.h"
#include "service/learning/known_future_table.h"
#include "service/learning/learned_replacement.h"
#include "service/learning/order_declarations.h"
#include "service/learning/stream_table.h"
#include "service/learning/trace_recorder.h"
#include "service/sampling/file_costs.h"
#include "service/treatment/store_figures.h"

namespace cairn::node {

// All of them outlive the learners.
struct LearnerSources {
  const NodeConfig& config;
  const NodeMemory& memory;
  const ClientTable& clients;
  const PlacementEngine& placement;
  const StoreFiles& files;
  const BufferedDirectories& directories;
};

class Learners {
 public:
  explicit Learners(const LearnerSources& from);

  // Which blocks leave a tier.
  const ReplacementPolicy& replacement() const;
  // Null when blocks leave in the order of their last use, which nobody has to learn.
  const LearnedReplacement* learned() const { return learned_.get(); }
  EventReader& events() { return events_; }
  StreamTable& streams() { return streams_; }
  OrderDeclarations& declarations() { return declarations_; }
  HeatTable& heat() { return heat_; }
  TraceRecorder& recorder() { return recorder_; }
  FileCosts& file_costs() { return costs_; }
  StoreFigures& store() { return store_; }

  // Before the organizer asks for anything. `prefetcher`: null when nothing is fetched ahead.
  void start_replacement(Prefetcher* prefetcher);
  // Begins to listen. Starts the prefetcher, too: it listens first.
  void start(Prefetcher* prefetcher);
  // Waits for the store, if that was asked.
  void stop();

 private:
  void place_by_heat(Prefetcher& prefetcher);

  const NodeConfig& config_;
  const NodeMemory& memory_;
  const PlacementEngine& placement_;
  StreamTable streams_;
  OrderDeclarations declarations_;
  KnownFutureTable future_;
  std::unique_ptr<LearnedReplacement> learned_;
  EventReader events_;
  ReadBalancer balancer_;
  HeatTable heat_;
  TraceRecorder recorder_;
  FileCosts costs_;
  StoreFigures store_;
};

}  // namespace cairn::node
