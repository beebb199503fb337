// SPDX-License-Identifier: Apache-2.0
#include "policy/regressions/cross_validation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/check.h"
#include "base/random_source.h"

namespace cairn {
namespace {

// The middle one; of an even number, the mean of the two. 0 where there are none.
double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// By which factor the two differ, whichever is larger.
double factor_between(double predicted, double measured) {
  if (!(predicted > 0) || !(measured > 0)) return CrossValidatedError::kFactorMax;
  const double factor = std::max(predicted / measured, measured / predicted);
  return std::min(factor, CrossValidatedError::kFactorMax);
}

// The least that nine of ten do not exceed. Requires: there are some.
double nine_tenths_of(std::vector<double> values) {
  CAIRN_DCHECK(!values.empty());
  const std::size_t place = (9 * values.size() + 9) / 10 - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(place),
                   values.end());
  return values[place];
}

CrossValidatedError error_of(const Observations& observations, const std::vector<double>& predicted,
                             const FoldPlan& plan) {
  CAIRN_DCHECK(predicted.size() == observations.rows());
  const double mean = observations.mean_response();
  double error_squares = 0;
  double total_squares = 0;
  std::vector<double> relative;
  std::vector<double> factors;
  for (std::size_t row = 0; row < predicted.size(); ++row) {
    const double response = observations.response(row);
    const double error = predicted[row] - response;
    error_squares += error * error;
    total_squares += (response - mean) * (response - mean);
    if (response != 0) relative.push_back(std::abs(error / response));
    factors.push_back(factor_between(predicted[row], response));
  }
  CrossValidatedError result;
  result.rows = predicted.size();
  result.plan = plan;
  if (total_squares > 0) result.r_squared = 1 - error_squares / total_squares;
  result.root_mean_square = std::sqrt(error_squares / static_cast<double>(predicted.size()));
  result.median_relative = median_of(std::move(relative));
  result.factor_of_nine_tenths = nine_tenths_of(std::move(factors));
  return result;
}

// Trains on all rows of other folds and predicts those of this one.
Status predict_fold(const ModelTrainer& trainer, const Observations& observations,
                    const std::vector<std::size_t>& folds, std::size_t fold,
                    std::vector<double>* predicted) {
  Observations training(observations.parameters());
  for (std::size_t row = 0; row < folds.size(); ++row) {
    if (folds[row] != fold) training.add(observations.point(row), observations.response(row));
  }
  CAIRN_DCHECK(training.rows() < observations.rows());
  const Result<PointModel> model = trainer(training);
  if (!model) return model.status();
  for (std::size_t row = 0; row < folds.size(); ++row) {
    if (folds[row] == fold) (*predicted)[row] = (*model)(observations.point(row));
  }
  return Status::ok();
}

}  // namespace

std::string CrossValidatedError::text() const {
  char line[192];
  std::snprintf(line, sizeof(line),
                "K = %zu, seed %llu, %zu rows: R2 %.3f, RMSE %.3g, median relative error %.1f %%, "
                "90 %% within x%.2f",
                plan.folds, static_cast<unsigned long long>(plan.seed), rows, r_squared,
                root_mean_square, 100 * median_relative, factor_of_nine_tenths);
  return line;
}

std::vector<std::size_t> deal_folds(std::size_t rows, const FoldPlan& plan) {
  CAIRN_DCHECK(plan.folds >= 2);
  CAIRN_DCHECK(plan.folds <= rows);
  std::vector<std::size_t> folds(rows);
  for (std::size_t row = 0; row < rows; ++row) folds[row] = row % plan.folds;
  RandomSource random(plan.seed);
  for (std::size_t left = rows; left > 1; --left) {
    std::swap(folds[left - 1], folds[random.below(static_cast<std::uint32_t>(left))]);
  }
  return folds;
}

Result<CrossValidatedError> cross_validate(const ModelTrainer& trainer,
                                           const Observations& observations, const FoldPlan& plan) {
  FoldPlan used = plan;
  used.folds = std::min(plan.folds, observations.rows());
  if (used.folds < 2) {
    return Status(StatusCode::kInvalid, "cross-validation needs at least two rows and two folds");
  }
  const std::vector<std::size_t> folds = deal_folds(observations.rows(), used);
  std::vector<double> predicted(observations.rows());
  for (std::size_t fold = 0; fold < used.folds; ++fold) {
    CAIRN_RETURN_IF_ERROR(predict_fold(trainer, observations, folds, fold, &predicted));
  }
  return error_of(observations, predicted, used);
}

}  // namespace cairn
