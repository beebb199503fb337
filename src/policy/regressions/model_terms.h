// SPDX-License-Identifier: Apache-2.0
// Terms of regression models and the formulas that list them, as R writes both: a term is a product
// of parameters (x1:x3:x4), and `A * B` means A + B + A:B, so a product brings all main effects and
// interactions below it. The two device equations of the two-tier paper stand here as constants
// ("Two-tier models", equation 8 in section 5.1, equation 9 in section 5.2).
//
//   parse_formula("Y = X1*X3")     terms (Intercept), x1, x3, x1:x3; parameters x1, x3
//
// A point has one value per parameter of the formula, in the order in which the formula first names
// them: x1, x3, x4, x5 for equation 8. Terms are ordered as R orders them: by degree, then as the
// expanded formula has them. Every formula has an intercept.
//
// Thread safety: pure functions and values. Units: those of the parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace cairn {

// A product of parameters, which are indices into a formula's list; the empty one is the intercept.
class ModelTerm {
 public:
  static constexpr std::size_t kParametersMax = 16;

  ModelTerm() = default;
  // Requires: parameter < kParametersMax.
  static ModelTerm of(std::size_t parameter);

  bool is_intercept() const { return parameters_ == 0; }
  std::size_t degree() const;
  bool has(std::size_t parameter) const;
  // Whether each parameter of `other` is in this term, too.
  bool contains(ModelTerm other) const { return (other.parameters_ & ~parameters_) == 0; }
  // The product. A parameter has no powers: x1:x1 is x1, as in R.
  ModelTerm times(ModelTerm other) const;
  // The product of the point's values; 1 for the intercept.
  double value(std::span<const double> point) const;
  bool operator==(const ModelTerm&) const = default;

 private:
  std::uint32_t parameters_ = 0;  // bit i: parameter i
};

struct ModelFormula {
  std::vector<std::string> parameters;  // in lower case, as first named
  std::vector<ModelTerm> terms;         // the intercept first

  // None where the formula does not name the parameter.
  std::optional<std::size_t> index_of(std::string_view parameter) const;
  bool has(ModelTerm term) const;
  // "(Intercept)", or the parameters with colons between them.
  std::string name_of(ModelTerm term) const;
  // "y ~ x1 + x3 + x1:x3"; "y ~ 1" where there is only the intercept.
  std::string text() const;
};

// Operators are those of R with their precedence: ":" before "*" before "+". The response and its
// "=" or "~" may be missing; "1" is the intercept, which is there in any case.
// Errors: kInvalid, which part of the text cannot be read.
Result<ModelFormula> parse_formula(std::string_view text);

// The hierarchy principle: an interaction is kept only with all terms of the widest formula that it
// contains. Both functions keep it, as drop.scope() and add.scope() of R do.
//
// Terms that no other term of the formula contains. The intercept never leaves.
std::vector<ModelTerm> removable_terms(const ModelFormula& formula);
// Terms of `widest` that are missing and contain no other missing term.
std::vector<ModelTerm> addable_terms(const ModelFormula& formula, const ModelFormula& widest);
// Requires: the formula has the term, and it is no intercept.
ModelFormula without(const ModelFormula& formula, ModelTerm term);
// The term takes its place of `widest`. Requires: it is in `widest` and not in the formula.
ModelFormula with(const ModelFormula& formula, ModelTerm term, const ModelFormula& widest);

// A parameter of a device equation, with the range of the paper's training set.
struct DeviceParameter {
  std::string_view name;
  std::string_view meaning;
  std::string_view unit;
  double lowest = 0;
  double highest = 0;  // 0: the paper names no range
};

enum class DeviceClass : std::uint8_t { kSolidState, kRotating };

// Thread safety: constants. `parameters` are in the paper's order; a point follows the formula.
struct DeviceEquation {
  DeviceClass device_class;
  unsigned number;  // in the paper
  std::string_view formula;
  std::span<const DeviceParameter> parameters;
};

// Y is the total time of all reads, or of all writes, in seconds.
extern const DeviceEquation kSolidStateEquation;
// Rotating and parallel: Y is the time to read or write a whole file once.
extern const DeviceEquation kRotatingEquation;

// The formula of an equation, which always parses.
ModelFormula formula_of(const DeviceEquation& equation);

}  // namespace cairn
