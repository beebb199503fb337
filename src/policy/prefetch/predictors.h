// SPDX-License-Identifier: Apache-2.0
// The table of predictors. A new one is added here and nowhere else.
//
// Thread safety: constant data.
#pragma once

#include "policy/prefetch/advised.h"
#include "policy/prefetch/declared.h"
#include "policy/prefetch/delta_path.h"
#include "policy/prefetch/extents.h"
#include "policy/prefetch/history_replay.h"
#include "policy/prefetch/knowledge.h"
#include "policy/prefetch/loop_nest.h"
#include "policy/prefetch/markov.h"
#include "policy/prefetch/sequential.h"
#include "policy/prefetch/stride.h"
#include "policy/prefetch/walks.h"

namespace cairn {

// The sources that a stream's predictors may borrow; they outlive the predictors.
struct PredictorSources {
  FileKnowledge& file;
  NodeKnowledge& node;
  StreamHints& hints;
};

struct PredictorMaker {
  const char* name;
  std::unique_ptr<Predictor> (*make)(const PredictorSources& sources);
  // It repeats what the program has said, which is believed before it is proven.
  bool is_told = false;
};

// If several are equally often right, the first is followed: the ones that the program's advice
// feeds, then those that need the fewest reads to know more of the future.
inline constexpr std::array kPredictorMakers = {
    PredictorMaker{"declared",
                   [](const PredictorSources& sources) -> std::unique_ptr<Predictor> {
                     return std::make_unique<Declared>(sources.hints);
                   },
                   true},
    PredictorMaker{"loop-nest",
                   [](const PredictorSources&) -> std::unique_ptr<Predictor> {
                     return std::make_unique<LoopNest>();
                   }},
    PredictorMaker{"stride",
                   [](const PredictorSources&) -> std::unique_ptr<Predictor> {
                     return std::make_unique<Stride>();
                   }},
    PredictorMaker{"sequential",
                   [](const PredictorSources&) -> std::unique_ptr<Predictor> {
                     return std::make_unique<Sequential>();
                   }},
    PredictorMaker{"advised",
                   [](const PredictorSources& sources) -> std::unique_ptr<Predictor> {
                     return std::make_unique<Advised>(sources.hints);
                   },
                   true},
    PredictorMaker{"extents",
                   [](const PredictorSources& sources) -> std::unique_ptr<Predictor> {
                     return std::make_unique<Extents>(sources.file.history);
                   }},
    PredictorMaker{"walks",
                   [](const PredictorSources&) -> std::unique_ptr<Predictor> {
                     return std::make_unique<Walks>();
                   }},
    PredictorMaker{"history-replay",
                   [](const PredictorSources& sources) -> std::unique_ptr<Predictor> {
                     return std::make_unique<HistoryReplay>(sources.file.history);
                   }},
    PredictorMaker{"delta-path",
                   [](const PredictorSources& sources) -> std::unique_ptr<Predictor> {
                     return std::make_unique<DeltaPath>(sources.node.paths());
                   }},
    PredictorMaker{"markov",
                   [](const PredictorSources& sources) -> std::unique_ptr<Predictor> {
                     return std::make_unique<Markov>(sources.file.segments);
                   }},
};
inline constexpr unsigned kPredictors = kPredictorMakers.size();
static_assert(kPredictors <= kPredictorsMax);

}  // namespace cairn
