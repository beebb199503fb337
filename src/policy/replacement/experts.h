// SPDX-License-Identifier: Apache-2.0
// The table of experts. A new one is added here and nowhere else.
//
// Thread safety: constant data.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "policy/replacement/farthest_future.h"
#include "policy/replacement/frequency_expert.h"
#include "policy/replacement/learned_reuse.h"
#include "policy/replacement/lirs.h"
#include "policy/replacement/random_expert.h"
#include "policy/replacement/recency_expert.h"
#include "policy/replacement/s3_fifo.h"
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
    ExpertMaker{"s3-fifo", make_expert<S3Fifo>},
    ExpertMaker{"lirs", make_expert<Lirs>},
    ExpertMaker{"lru", make_recency_expert<RecencyExpert::Order::kLru>},
    ExpertMaker{"lfu", make_expert<FrequencyExpert>},
    ExpertMaker{"random", make_expert<RandomExpert>},
    ExpertMaker{"fifo", make_recency_expert<RecencyExpert::Order::kFifo>},
    ExpertMaker{"mru", make_recency_expert<RecencyExpert::Order::kMru>},
    ExpertMaker{"farthest-in-future", make_expert<FarthestFuture>},
    ExpertMaker{"segment-score", make_expert<SegmentScore>},
    ExpertMaker{"ws", make_expert<WeightSharing>},
};

// Null when no expert is named so. Requires: capacity > 0.
inline std::unique_ptr<Expert> make_expert_named(std::string_view name, std::uint32_t capacity) {
  for (const ExpertMaker& maker : kExpertMakers) {
    if (name == maker.name) return maker.make(capacity);
  }
  return nullptr;
}

}  // namespace cairn
