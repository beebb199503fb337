// SPDX-License-Identifier: Apache-2.0
// What the node has learned from the programs' accesses, and what that was good for: fetches by
// predictor, the experts of replacement, how many events came.
//
// Thread safety: any thread. Ownership: borrows everything.
#pragma once

#include "base/node_config.h"
#include "memory/tiers/node_memory.h"
#include "service/control/json.h"
#include "service/fetching/prefetcher.h"
#include "service/learning/event_reader.h"
#include "service/learning/learned_replacement.h"

namespace cairn::node {

class LearningReport {
 public:
  // `prefetcher`: null when nothing is fetched ahead; `learned`: null when blocks leave in the
  // order of their last use.
  LearningReport(const NodeConfig& config, const NodeMemory& memory, const EventReader& events,
                 Prefetcher* prefetcher, const LearnedReplacement* learned)
      : config_(config),
        memory_(memory),
        events_(events),
        prefetcher_(prefetcher),
        learned_(learned) {}

  // One entry per predictor that had something fetched.
  Json fetches() const;
  // Where orders of reads are kept between nodes, and of how many files something was known from
  // there; empty when nothing is kept.
  Json remembered() const;
  // One entry per tier; empty when nothing is learned.
  Json replacement() const;
  Json events() const;

 private:
  const NodeConfig& config_;
  const NodeMemory& memory_;
  const EventReader& events_;
  Prefetcher* const prefetcher_;
  const LearnedReplacement* const learned_;
};

}  // namespace cairn::node
