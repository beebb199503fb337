// SPDX-License-Identifier: Apache-2.0
// Ordinary least squares of a formula's terms, with the table that R's summary(lm) prints and the
// two-tier paper shows (tables 1 to 4, sections 5.1 and 5.2).
//
//   Result<LinearRegression> model = LinearRegression::fit(formula, observations);
//   if (model) std::puts(model->table().c_str());
//
// Products of the parameters span 20 decades, so the fit is on standardised columns (mean 0, length
// 1) by column-pivoted Householder QR; estimates and errors are given in raw units. A column that
// depends on columns before it is dropped and named, as R's lm() does (tolerance 1e-7).
//
// Assumes errors of one variance, independent and normal; intervals and p values hold as far as
// that does. The AIC is R's AIC(lm): n (ln 2 pi + 1 + ln(RSS / n)) + 2 (estimated terms + 1).
//
// Thread safety: an immutable value. Units: those of the response and the parameters.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "policy/regressions/model_terms.h"
#include "policy/regressions/observations.h"

namespace cairn {

// One row of the table. An estimate without any error has an infinite t value.
struct Coefficient {
  ModelTerm term;
  std::string name;
  double estimate = 0;
  double standard_error = 0;
  double t_value = 0;
  double p_value = 1;  // Pr(>|t|): of a t value this far from 0 where the true estimate is 0
};

struct FitSummary {
  std::size_t rows = 0;
  std::size_t degrees_of_freedom = 0;
  double residual_sum_of_squares = 0;
  double residual_standard_error = 0;
  double r_squared = 0;  // 0 where all responses are the same
  double adjusted_r_squared = 0;
  double aic = 0;  // minus infinity where the fit is exact
};

class LinearRegression {
 public:
  // Columns whose length shrinks below this part of itself, when all columns before are taken out
  // of it, are dropped.
  static constexpr double kTolerance = 1e-7;

  // Requires: a point has one value per parameter of the formula.
  // Errors: kInvalid, when there are not more rows than terms, or numbers that are not finite.
  static Result<LinearRegression> fit(const ModelFormula& formula,
                                      const Observations& observations);

  // The intercept first, then the formula's terms without those dropped.
  const std::vector<Coefficient>& coefficients() const { return coefficients_; }
  const std::vector<ModelTerm>& dropped_terms() const { return dropped_terms_; }
  const FitSummary& summary() const { return summary_; }
  const ModelFormula& formula() const { return formula_; }
  const std::vector<ParameterRange>& training_ranges() const { return ranges_; }

  bool is_inside_range(std::span<const double> point) const { return is_inside(ranges_, point); }
  // The interval has the error of the estimates and that of one measurement.
  Prediction predict(std::span<const double> point) const;

  // Lines: the coefficients as R prints them, what was dropped, and the summary.
  std::string table() const;

 private:
  // A column that is estimated, with what its standardisation needs.
  struct Column {
    ModelTerm term;
    double mean = 0;
    double length = 1;  // of the column without its mean
    double slope = 0;   // of the standardised column
  };
  struct Estimator;

  LinearRegression() = default;

  ModelFormula formula_;
  std::vector<Coefficient> coefficients_;
  std::vector<ModelTerm> dropped_terms_;
  FitSummary summary_;
  std::vector<ParameterRange> ranges_;
  std::vector<Column> columns_;
  std::vector<double> covariance_;  // of the slopes in squared standard errors, column by column
  double mean_response_ = 0;
};

}  // namespace cairn
