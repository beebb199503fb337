// SPDX-License-Identifier: Apache-2.0
// The table of the experts that a user may choose. A new one is added here, and to the choices of
// the option replacement.expert (cli/configuration/option_table.cc). Experts that only comparisons
// need stand in policy/replacement/compared_experts.h.
//
// Thread safety: constant data.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "policy/replacement/frequency_expert.h"
#include "policy/replacement/learned_reuse.h"
#include "policy/replacement/random_expert.h"
#include "policy/replacement/recency_expert.h"
#include "policy/replacement/segment_score.h"
#include "policy/replacement/weight_sharing.h"
#include "policy/replacement/ws_plus.h"

namespace cairn {

struct ExpertMaker {
  const char* name;
  std::unique_ptr<Expert> (*make)(std::uint32_t capacity);
};

template <typename Kind>
std::unique_ptr<Expert> make_expert(std::uint32_t capacity) {
  return std::make_unique<Kind>(capacity);
}
template <RecencyExpert::Order Ordered>
std::unique_ptr<Expert> make_recency_expert(std::uint32_t capacity) {
  return std::make_unique<RecencyExpert>(Ordered, capacity);
}

// The first is the default.
inline constexpr std::array kExpertMakers = {
    ExpertMaker{"ws-plus", make_expert<WsPlus>},
    ExpertMaker{"learned", make_expert<LearnedReuse>},
    ExpertMaker{"lru", make_recency_expert<RecencyExpert::Order::kLru>},
    ExpertMaker{"lfu", make_expert<FrequencyExpert>},
    ExpertMaker{"random", make_expert<RandomExpert>},
    ExpertMaker{"segment-score", make_expert<SegmentScore>},
    ExpertMaker{"ws", make_expert<WeightSharing>},
};

// Returns: null when no expert of the table has that name. Requires: capacity > 0.
inline std::unique_ptr<Expert> make_expert_named(std::string_view name, std::uint32_t capacity) {
  for (const ExpertMaker& maker : kExpertMakers) {
    if (name == maker.name) return maker.make(capacity);
  }
  return nullptr;
}

}  // namespace cairn
