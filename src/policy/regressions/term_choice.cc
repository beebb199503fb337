// SPDX-License-Identifier: Apache-2.0
#include "policy/regressions/term_choice.h"

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace cairn {
namespace {

// A smaller gain is rounding, and steps that follow it could go in a circle.
constexpr double kGainMin = 1e-7;

// Goes from formula to formula. Each of them fits, because it has no more terms than the first.
class StepwiseChoice {
 public:
  StepwiseChoice(const ModelFormula& widest, const Observations& observations,
                 LinearRegression first)
      : widest_(widest), observations_(observations), chosen_{std::move(first), {}} {}

  ChosenTerms run() {
    while (drop_inestimable() || take_best()) CAIRN_DCHECK(chosen_.steps.size() < kStepsMax);
    return std::move(chosen_);
  }

 private:
  // More than enough for any formula; each step but the first few lowers the AIC.
  static constexpr std::size_t kStepsMax = std::size_t{1} << 20;

  // A term that depends on the others costs nothing to remove, if no other term contains it.
  bool drop_inestimable() {
    const std::vector<ModelTerm>& dropped = chosen_.regression.dropped_terms();
    const std::vector<ModelTerm> removable = removable_terms(chosen_.regression.formula());
    for (auto term = dropped.rbegin(); term != dropped.rend(); ++term) {
      if (std::find(removable.begin(), removable.end(), *term) == removable.end()) continue;
      const ModelFormula smaller = without(chosen_.regression.formula(), *term);
      const std::string change = "- " + smaller.name_of(*term);
      move_to(fitted(smaller), change);
      return true;
    }
    return false;
  }

  // Returns: whether there was a step that lowers the AIC.
  bool take_best() {
    const ModelFormula now = chosen_.regression.formula();
    best_.reset();
    for (const ModelTerm term : removable_terms(now)) {
      consider(without(now, term), "- " + now.name_of(term));
    }
    for (const ModelTerm term : addable_terms(now, widest_)) {
      consider(with(now, term, widest_), "+ " + now.name_of(term));
    }
    const double aic_now = chosen_.regression.summary().aic;
    if (!best_ || !(best_->summary().aic < aic_now - kGainMin)) return false;
    move_to(std::move(*best_), best_change_);
    return true;
  }

  void consider(const ModelFormula& formula, std::string change) {
    LinearRegression candidate = fitted(formula);
    if (best_ && !(candidate.summary().aic < best_->summary().aic)) return;
    best_ = std::move(candidate);
    best_change_ = std::move(change);
  }

  LinearRegression fitted(const ModelFormula& formula) const {
    CAIRN_DCHECK(formula.terms.size() <= widest_.terms.size());
    Result<LinearRegression> fit = LinearRegression::fit(formula, observations_);
    CAIRN_CHECK(fit.is_ok());
    return std::move(fit.value());
  }

  void move_to(LinearRegression next, std::string change) {
    chosen_.steps.push_back({std::move(change), next.summary().aic});
    chosen_.regression = std::move(next);
  }

  const ModelFormula& widest_;
  const Observations& observations_;
  ChosenTerms chosen_;
  std::optional<LinearRegression> best_;
  std::string best_change_;
};

}  // namespace

Result<ChosenTerms> choose_terms(const ModelFormula& widest, const Observations& observations) {
  Result<LinearRegression> first = LinearRegression::fit(widest, observations);
  if (!first) return first.status();
  return StepwiseChoice(widest, observations, std::move(first.value())).run();
}

}  // namespace cairn
