// SPDX-License-Identifier: Apache-2.0
// K-fold cross-validation: how wrong a model is about measurements that it was not fitted to. The
// two-tier paper uses K = 20 against over-fitting (section 5.1).
//
// The rows are dealt out to K folds by a seeded shuffle, so that fold sizes differ by at most one.
// Each fold is predicted by a model that is trained on all others; whatever chooses between models
// belongs into the trainer, or the error would be of a choice that has seen the answers.
//
// Thread safety: pure functions. Units: the response's; relative errors are parts of 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "policy/regressions/observations.h"

namespace cairn {

struct FoldPlan {
  std::size_t folds = 20;
  std::uint64_t seed = 1;
};

struct CrossValidatedError {
  static constexpr double kFactorMax = 1000;

  std::size_t rows = 0;
  FoldPlan plan;  // as used: not more folds than rows
  double r_squared =
      0;  // 1 - squared errors / squares around the mean; below 0 if the mean is better
  double root_mean_square = 0;
  // The median of |predicted - measured| / |measured|; rows whose response is 0 are left out.
  double median_relative = 0;
  // Nine of ten measurements are between predicted / factor and predicted * factor. At least 1;
  // kFactorMax where a prediction or a measurement is not positive.
  double factor_of_nine_tenths = kFactorMax;

  // "K = 20, seed 1, 400 rows: R2 0.953, RMSE 1.21, median relative error 8.1 %, 90 % within x1.31"
  std::string text() const;
};

// The fold of each row. Requires: 2 <= folds <= rows.
std::vector<std::size_t> deal_folds(std::size_t rows, const FoldPlan& plan);

using PointModel = std::function<double(std::span<const double> point)>;
using ModelTrainer = std::function<Result<PointModel>(const Observations& training)>;

// Errors: kInvalid, when there are fewer than two rows or folds; what the trainer returns.
Result<CrossValidatedError> cross_validate(const ModelTrainer& trainer,
                                           const Observations& observations,
                                           const FoldPlan& plan = {});

}  // namespace cairn
