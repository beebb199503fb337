// SPDX-License-Identifier: Apache-2.0
#include "service/node/learners.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "policy/replacement/policies.h"
#include "service/learning/admission_costs.h"

namespace cairn::node {
namespace {

std::unique_ptr<LearnedReplacement> learned_replacement(const NodeMemory& memory,
                                                        const NodeConfig& config) {
  if (replacement_policy_named(config.replacement_expert) != nullptr) return nullptr;
  return std::make_unique<LearnedReplacement>(memory, config.replacement_expert,
                                              config.evict_high_percent);
}

}  // namespace

Learners::Learners(const LearnerSources& from)
    : config_(from.config),
      memory_(from.memory),
      placement_(from.placement),
      streams_(memory_),
      future_(memory_, streams_),
      learned_(learned_replacement(memory_, config_)),
      events_(memory_, streams_, config_.events_keep_percent),
      balancer_(memory_, from.clients,
                [this](unsigned tier) { return placement_.figures_of(tier).read_bandwidth; }),
      heat_(memory_, config_.node_directory),
      recorder_(memory_, events_, from.clients),
      costs_(memory_, from.clients, events_, from.files),
      store_(from.directories) {}

const ReplacementPolicy& Learners::replacement() const {
  if (learned_ != nullptr) return *learned_;
  return *replacement_policy_named(config_.replacement_expert);
}

void Learners::start_replacement(Prefetcher* prefetcher) {
  if (learned_ == nullptr) return;
  future_.follow(&declarations_.orders(), [this](const ToldAccess& told) {
    return path_of_descriptor(memory_.slot(told.slot()).pid.load(), told.event.descriptor);
  });
  if (prefetcher != nullptr) {
    future_.leave_out_files();
    prefetcher->set_found_repeated([this](const ToldAccess& told, RepeatedOrder order) {
      future_.found(told, std::move(order));
    });
  }
  learned_->set_future(&future_);
  if (!config_.admits_by_value) return;
  // Early, while the store is most likely to answer: a thread that it keeps is one more that the
  // end of the node has to leave behind.
  store_.ask();
  // A node without directories of its own learns from its first run which store it has.
  learned_->admit_by_value(
      [this, unknown = profiler::tier_figures(profiler::DeviceClass::kUnknown)](TierId tier) {
        const StoreFigures::Figures known = store_.last_or_ask();
        return admission_costs(known ? *known : unknown, placement_.figures_of(raw(tier)));
      });
}

// The most urgent learner hears first.
void Learners::start(Prefetcher* prefetcher) {
  events_.add(declarations_);
  if (prefetcher != nullptr) {
    declarations_.set_on_declared(
        [prefetcher](DeclaredOrders& fresh) { prefetcher->note_declared(fresh); });
    if (config_.prefetches_by_heat) place_by_heat(*prefetcher);
    events_.add(*prefetcher);
  }
  if (learned_ != nullptr) {
    events_.add(future_);
    events_.add(*learned_);
  }
  if (config_.balances_reads) events_.add(balancer_);
  events_.add(heat_);
  events_.add(recorder_);
  events_.add(costs_);
  if (prefetcher != nullptr) prefetcher->start();
  events_.start();
}

void Learners::stop() {
  events_.stop();
  store_.stop();
}

// The part of each tier that is for what was fetched ahead is for what is hot as well.
void Learners::place_by_heat(Prefetcher& prefetcher) {
  std::vector<std::uint64_t> capacities;
  for (unsigned tier = 0; tier < memory_.tiers_for(BufferingMode::kAsync); ++tier) {
    const std::uint64_t slabs = memory_.pool(static_cast<TierId>(tier)).slab_count();
    capacities.push_back(slabs * kBlockBytes * config_.prefetch_percent / 100);
  }
  CAIRN_CHECK(!capacities.empty());
  heat_.set_placer(std::make_unique<HeatPlacer>(
      capacities, HeatTrigger::Limits{}, monotonic_ns(),
      [&prefetcher](ObjectIndex object, const HeatRange& range, std::optional<TierId> to,
                    bool rises) {
        if (to) prefetcher.carry_by_heat(object, range.offset, range.bytes, *to, rises);
      }));
}

}  // namespace cairn::node
