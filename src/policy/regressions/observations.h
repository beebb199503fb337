// SPDX-License-Identifier: Apache-2.0
// Measurements that models are fitted to: rows of parameter values with the response of each, the
// box of values that they cover, and a prediction with its interval.
//
// Thread safety: values. Units: those of the parameters; responses of devices are seconds.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"

namespace cairn {

class Observations {
 public:
  static constexpr double kResponseMax = 1e150;  // beyond, sums of squares overflow

  // Requires: at least one parameter.
  explicit Observations(std::size_t parameters);

  // Requires: one value per parameter.
  void add(std::span<const double> point, double response);

  std::size_t parameters() const { return parameters_; }
  std::size_t rows() const { return responses_.size(); }
  // Requires: row < rows(). The span is valid until the next add().
  std::span<const double> point(std::size_t row) const;
  double response(std::size_t row) const { return responses()[row]; }
  const std::vector<double>& responses() const { return responses_; }
  double mean_response() const;
  // Errors: kInvalid, the first row with a number that is not finite, or with a response whose
  // square is not.
  Status check_finite() const;

 private:
  std::size_t parameters_;
  std::vector<double> values_;  // row by row
  std::vector<double> responses_;
};

// The smallest box around training points. A prediction outside of it is an extrapolation.
struct ParameterRange {
  double lowest = 0;
  double highest = 0;
};
std::vector<ParameterRange> ranges_of(const Observations& observations);
// The edges are inside. Requires: one value per range.
bool is_inside(const std::vector<ParameterRange>& ranges, std::span<const double> point);

// An expected response, and where one new measurement lies with a probability of 90 %.
struct Prediction {
  static constexpr double kProbability = 0.9;

  double value = 0;
  double lower = 0;
  double upper = 0;
  bool is_extrapolation = false;  // the point is outside the training range
};

// How many standard errors a Prediction reaches to either side. Requires: degrees_of_freedom > 0.
double interval_factor(std::size_t degrees_of_freedom);

}  // namespace cairn
