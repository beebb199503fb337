// SPDX-License-Identifier: Apache-2.0
#include "policy/regressions/observations.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "base/check.h"
#include "policy/regressions/student_t.h"

namespace cairn {

Observations::Observations(std::size_t parameters) : parameters_(parameters) {
  CAIRN_DCHECK(parameters > 0);
}

void Observations::add(std::span<const double> point, double response) {
  CAIRN_DCHECK(point.size() == parameters_);
  values_.insert(values_.end(), point.begin(), point.end());
  responses_.push_back(response);
  CAIRN_DCHECK(values_.size() == responses_.size() * parameters_);
}

std::span<const double> Observations::point(std::size_t row) const {
  CAIRN_DCHECK(row < rows());
  return std::span<const double>(values_).subspan(row * parameters_, parameters_);
}

double Observations::mean_response() const {
  if (responses_.empty()) return 0;
  return std::accumulate(responses_.begin(), responses_.end(), 0.0) /
         static_cast<double>(responses_.size());
}

Status Observations::check_finite() const {
  for (std::size_t row = 0; row < rows(); ++row) {
    const std::span<const double> values = point(row);
    if (!(std::abs(responses_[row]) <= kResponseMax) ||
        !std::all_of(values.begin(), values.end(), [](double one) { return std::isfinite(one); })) {
      return {StatusCode::kInvalid,
              "row " + std::to_string(row) + " has a number that is not finite, or too large"};
    }
  }
  return Status::ok();
}

std::vector<ParameterRange> ranges_of(const Observations& observations) {
  std::vector<ParameterRange> ranges(observations.parameters());
  for (std::size_t row = 0; row < observations.rows(); ++row) {
    const std::span<const double> point = observations.point(row);
    for (std::size_t index = 0; index < ranges.size(); ++index) {
      ParameterRange& range = ranges[index];
      range.lowest = row == 0 ? point[index] : std::min(range.lowest, point[index]);
      range.highest = row == 0 ? point[index] : std::max(range.highest, point[index]);
    }
  }
  return ranges;
}

bool is_inside(const std::vector<ParameterRange>& ranges, std::span<const double> point) {
  CAIRN_DCHECK(ranges.size() == point.size());
  for (std::size_t index = 0; index < ranges.size(); ++index) {
    // A value that is no number is inside nowhere.
    if (!(point[index] >= ranges[index].lowest && point[index] <= ranges[index].highest)) {
      return false;
    }
  }
  return true;
}

double interval_factor(std::size_t degrees_of_freedom) {
  CAIRN_DCHECK(degrees_of_freedom > 0);
  return student_quantile(0.5 + Prediction::kProbability / 2, degrees_of_freedom);
}

}  // namespace cairn
