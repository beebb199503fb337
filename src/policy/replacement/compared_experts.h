// SPDX-License-Identifier: Apache-2.0
// The experts that only comparisons need: `./dev bench replacement`, `cairn trace replay` and the
// conformance suite know them, the options of a node do not. ws-plus has some of them inside.
//
// Thread safety: constant data.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "policy/replacement/experts.h"
#include "policy/replacement/farthest_future.h"
#include "policy/replacement/lirs.h"
#include "policy/replacement/s3_fifo.h"

namespace cairn {

inline constexpr std::array kComparedExpertMakers = {
    ExpertMaker{"s3-fifo", make_expert<S3Fifo>},
    ExpertMaker{"lirs", make_expert<Lirs>},
    ExpertMaker{"fifo", make_recency_expert<RecencyExpert::Order::kFifo>},
    ExpertMaker{"mru", make_recency_expert<RecencyExpert::Order::kMru>},
    ExpertMaker{"farthest-in-future", make_expert<FarthestFuture>},
};

// Makes an expert of either table. Returns: null when no expert has that name.
// Requires: capacity > 0.
inline std::unique_ptr<Expert> make_compared_expert(std::string_view name, std::uint32_t capacity) {
  for (const ExpertMaker& maker : kComparedExpertMakers) {
    if (name == maker.name) return maker.make(capacity);
  }
  return make_expert_named(name, capacity);
}

}  // namespace cairn
