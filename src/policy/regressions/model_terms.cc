// SPDX-License-Identifier: Apache-2.0
#include "policy/regressions/model_terms.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <iterator>

#include "base/check.h"

namespace cairn {
namespace {

constexpr std::array<DeviceParameter, 5> kSolidStateParameters{{
    {"x1", "client threads", "threads", 8, 64},
    {"x2", "distinct block addresses; not in the formula", "blocks", 0, 0},
    {"x3", "size of a request", "bytes", 512, 262144},
    {"x4", "requests of all threads", "requests", 1000, 4e6},
    {"x5", "address range in use", "bytes", 500e6, 500e9},
}};
constexpr std::array<DeviceParameter, 5> kRotatingParameters{{
    {"x1", "processes", "processes", 4, 200},
    {"x2", "disks (stripe count)", "disks", 1, 8},
    {"x3", "stripes per disk", "stripes", 0, 0},
    {"x4", "size of a stripe", "bytes", 64e3, 64e6},
    {"x5", "size of the file", "bytes", 100e6, 350e9},
}};

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char letter) { return letter == ' ' || letter == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> parts_between(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(separator); end != text.npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

bool is_parameter_name(std::string_view name) {
  const auto is_letter = [](unsigned char letter) { return std::isalnum(letter) || letter == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name.front())) &&
         std::all_of(name.begin(), name.end(), is_letter);
}

// Adds terms that are not there yet.
void append_new(const std::vector<ModelTerm>& terms, std::vector<ModelTerm>* all) {
  for (const ModelTerm term : terms) {
    if (std::find(all->begin(), all->end(), term) == all->end()) all->push_back(term);
  }
}

// Reads one right-hand side from the outermost operator inwards.
class FormulaReader {
 public:
  Result<ModelFormula> read(std::string_view text) {
    formula_.terms.push_back({});
    for (const std::string_view summand : parts_between(text, '+')) {
      Result<std::vector<ModelTerm>> terms = read_product(summand);
      if (!terms) return terms.status();
      append_new(*terms, &formula_.terms);
    }
    sort_by_degree();
    CAIRN_DCHECK(formula_.terms.front().is_intercept());
    return std::move(formula_);
  }

 private:
  // Terms of one degree stay in their order. (std::stable_sort() would do, but for a warning of
  // clang's about this standard library.)
  void sort_by_degree() {
    std::vector<ModelTerm> sorted;
    for (std::size_t degree = 0; sorted.size() < formula_.terms.size(); ++degree) {
      CAIRN_DCHECK(degree <= ModelTerm::kParametersMax);
      std::ranges::copy_if(formula_.terms, std::back_inserter(sorted),
                           [degree](ModelTerm term) { return term.degree() == degree; });
    }
    formula_.terms = std::move(sorted);
  }

  // A * B * C is (A * B) * C; each step brings the factor and its products with all terms so far.
  Result<std::vector<ModelTerm>> read_product(std::string_view text) {
    std::vector<ModelTerm> terms;
    for (const std::string_view part : parts_between(text, '*')) {
      Result<ModelTerm> factor = read_interaction(part);
      if (!factor) return factor.status();
      std::vector<ModelTerm> products{*factor};
      for (const ModelTerm term : terms) products.push_back(term.times(*factor));
      append_new(products, &terms);
    }
    return terms;
  }

  Result<ModelTerm> read_interaction(std::string_view text) {
    ModelTerm product;
    for (const std::string_view part : parts_between(text, ':')) {
      const std::string_view name = trimmed(part);
      if (name == "1") continue;
      if (!is_parameter_name(name)) {
        const std::string quoted = std::string("'").append(name).append("'");
        return Status(StatusCode::kInvalid,
                      quoted + " is no parameter; a formula has names, 1, +, * and :");
      }
      const std::optional<std::size_t> index = index_for(name);
      if (!index) {
        return Status(
            StatusCode::kInvalid,
            "a formula has at most " + std::to_string(ModelTerm::kParametersMax) + " parameters");
      }
      product = product.times(ModelTerm::of(*index));
    }
    return product;
  }

  // None where there are too many.
  std::optional<std::size_t> index_for(std::string_view name) {
    std::string lower(name);
    for (char& letter : lower) {
      letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    if (const auto known = formula_.index_of(lower)) return known;
    if (formula_.parameters.size() == ModelTerm::kParametersMax) return std::nullopt;
    formula_.parameters.push_back(lower);
    return formula_.parameters.size() - 1;
  }

  ModelFormula formula_;
};

}  // namespace

constinit const DeviceEquation kSolidStateEquation{
    DeviceClass::kSolidState, 8, "Y = X1*X3*X4 + X5*X4*X3", kSolidStateParameters};
constinit const DeviceEquation kRotatingEquation{DeviceClass::kRotating, 9, "Y = X3*X4 + X5*X1*X2",
                                                 kRotatingParameters};

ModelTerm ModelTerm::of(std::size_t parameter) {
  CAIRN_DCHECK(parameter < kParametersMax);
  ModelTerm term;
  term.parameters_ = std::uint32_t{1} << parameter;
  return term;
}

std::size_t ModelTerm::degree() const {
  return static_cast<std::size_t>(std::popcount(parameters_));
}

bool ModelTerm::has(std::size_t parameter) const { return contains(of(parameter)); }

ModelTerm ModelTerm::times(ModelTerm other) const {
  ModelTerm product;
  product.parameters_ = parameters_ | other.parameters_;
  return product;
}

double ModelTerm::value(std::span<const double> point) const {
  CAIRN_DCHECK(parameters_ >> point.size() == 0);
  double product = 1;
  for (std::size_t index = 0; index < point.size(); ++index) {
    if (has(index)) product *= point[index];
  }
  return product;
}

std::optional<std::size_t> ModelFormula::index_of(std::string_view parameter) const {
  const auto found = std::find(parameters.begin(), parameters.end(), parameter);
  if (found == parameters.end()) return std::nullopt;
  return static_cast<std::size_t>(found - parameters.begin());
}

bool ModelFormula::has(ModelTerm term) const {
  return std::find(terms.begin(), terms.end(), term) != terms.end();
}

std::string ModelFormula::name_of(ModelTerm term) const {
  if (term.is_intercept()) return "(Intercept)";
  std::string name;
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    if (!term.has(index)) continue;
    if (!name.empty()) name += ':';
    name += parameters[index];
  }
  CAIRN_DCHECK(!name.empty());
  return name;
}

std::string ModelFormula::text() const {
  std::string sum = "y ~ ";
  for (const ModelTerm term : terms) {
    if (!term.is_intercept()) sum.append(name_of(term)).append(" + ");
  }
  if (terms.size() < 2) return sum.append("1");
  sum.resize(sum.size() - 3);
  return sum;
}

Result<ModelFormula> parse_formula(std::string_view text) {
  const std::size_t sign = text.find_first_of("=~");
  if (sign != text.npos) {
    if (!is_parameter_name(trimmed(text.substr(0, sign)))) {
      return Status(StatusCode::kInvalid, "the left side of a formula is one name");
    }
    text.remove_prefix(sign + 1);
  }
  return FormulaReader().read(text);
}

std::vector<ModelTerm> removable_terms(const ModelFormula& formula) {
  std::vector<ModelTerm> removable;
  for (const ModelTerm term : formula.terms) {
    const bool is_needed =
        std::any_of(formula.terms.begin(), formula.terms.end(),
                    [term](ModelTerm other) { return other != term && other.contains(term); });
    if (!term.is_intercept() && !is_needed) removable.push_back(term);
  }
  return removable;
}

std::vector<ModelTerm> addable_terms(const ModelFormula& formula, const ModelFormula& widest) {
  std::vector<ModelTerm> missing;
  for (const ModelTerm term : widest.terms) {
    if (!formula.has(term)) missing.push_back(term);
  }
  std::vector<ModelTerm> addable;
  for (const ModelTerm term : missing) {
    const bool lacks_a_part = std::any_of(missing.begin(), missing.end(), [term](ModelTerm other) {
      return other != term && term.contains(other);
    });
    if (!lacks_a_part) addable.push_back(term);
  }
  return addable;
}

ModelFormula without(const ModelFormula& formula, ModelTerm term) {
  CAIRN_DCHECK(!term.is_intercept());
  ModelFormula smaller = formula;
  std::erase(smaller.terms, term);
  CAIRN_DCHECK(smaller.terms.size() + 1 == formula.terms.size());
  return smaller;
}

ModelFormula with(const ModelFormula& formula, ModelTerm term, const ModelFormula& widest) {
  CAIRN_DCHECK(!formula.has(term));
  ModelFormula larger{formula.parameters, {}};
  for (const ModelTerm candidate : widest.terms) {
    if (candidate == term || formula.has(candidate)) larger.terms.push_back(candidate);
  }
  CAIRN_DCHECK(larger.terms.size() == formula.terms.size() + 1);
  return larger;
}

ModelFormula formula_of(const DeviceEquation& equation) {
  Result<ModelFormula> formula = parse_formula(equation.formula);
  CAIRN_CHECK(formula.is_ok());
  return std::move(formula.value());
}

}  // namespace cairn
