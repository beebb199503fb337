// SPDX-License-Identifier: Apache-2.0
// The source of predictors that stand in no table: a plugin brings them (plugins/). They get the
// same calls as those of the table, and the same scores judge them (policy/prefetch/chooser.h).
//
// Thread safety: none; that of the predictors. Ownership: outlives the predictors that it makes.
#pragma once

#include <memory>

#include "policy/prefetch/predictor.h"

namespace cairn {

class PredictorSupply {
 public:
  PredictorSupply() = default;
  virtual ~PredictorSupply() = default;
  PredictorSupply(const PredictorSupply&) = delete;
  PredictorSupply& operator=(const PredictorSupply&) = delete;

  // The name of all that it makes.
  virtual const char* name() const = 0;
  // One for a new stream. `file_blocks` is how many blocks its file has at each time; it outlives
  // the predictor.
  virtual std::unique_ptr<Predictor> make(const std::int64_t& file_blocks) = 0;
};

}  // namespace cairn
