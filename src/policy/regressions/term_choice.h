// SPDX-License-Identifier: Apache-2.0
// Which terms of a formula a regression needs: stepwise by AIC in both directions, as R's step()
// does, with the hierarchy principle (model_terms.h). The two-tier paper chose its terms with R by
// AIC and Anova (section 5.1).
//
//   start with all terms; drop those that cannot be estimated, the last first
//   repeat: try each removal and each return of one term; take the one with the lowest AIC
//   until none lowers the AIC
//
// Thread safety: pure functions and values. Units: none.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "policy/regressions/linear_regression.h"

namespace cairn {

struct ChoiceStep {
  std::string change;  // "- x1:x3" or "+ x1:x3"
  double aic = 0;      // after it
};

struct ChosenTerms {
  LinearRegression regression;  // its formula has the chosen terms, and all parameters
  std::vector<ChoiceStep> steps;
};

// Errors: as LinearRegression::fit() with all terms of `widest`.
Result<ChosenTerms> choose_terms(const ModelFormula& widest, const Observations& observations);

}  // namespace cairn
