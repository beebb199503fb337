// SPDX-License-Identifier: Apache-2.0
#include "policy/regressions/model_terms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ModelFormula parsed(std::string_view text) {
  Result<ModelFormula> formula = parse_formula(text);
  EXPECT_TRUE(formula.is_ok()) << text << ": " << formula.status().message();
  return formula.is_ok() ? *formula : ModelFormula{};
}

std::vector<std::string> names_in(const ModelFormula& formula,
                                  const std::vector<ModelTerm>& terms) {
  std::vector<std::string> names;
  for (const ModelTerm term : terms) names.push_back(formula.name_of(term));
  return names;
}
std::vector<std::string> term_names(const ModelFormula& formula) {
  return names_in(formula, formula.terms);
}

TEST(ModelTerms, EquationEightHasTheTermsOfTablesOneAndTwoInTheirOrder) {
  EXPECT_THAT(term_names(formula_of(kSolidStateEquation)),
              ElementsAre("(Intercept)", "x1", "x3", "x4", "x5", "x1:x3", "x1:x4", "x3:x4", "x4:x5",
                          "x3:x5", "x1:x3:x4", "x3:x4:x5"));
}

TEST(ModelTerms, EquationNineHasTheTermsOfTableThreeInTheirOrder) {
  EXPECT_THAT(term_names(formula_of(kRotatingEquation)),
              ElementsAre("(Intercept)", "x3", "x4", "x5", "x1", "x2", "x3:x4", "x5:x1", "x5:x2",
                          "x1:x2", "x5:x1:x2"));
}

TEST(ModelTerms, TableFourIsTheSameEquationWrittenInAnotherOrder) {
  EXPECT_THAT(term_names(parsed("Y = X3*X4 + X2*X1*X5")),
              ElementsAre("(Intercept)", "x3", "x4", "x2", "x1", "x5", "x3:x4", "x2:x1", "x2:x5",
                          "x1:x5", "x2:x1:x5"));
}

TEST(ModelTerms, EachParameterOfAFormulaIsDescribed) {
  for (const DeviceEquation* equation : {&kSolidStateEquation, &kRotatingEquation}) {
    for (const std::string& name : formula_of(*equation).parameters) {
      const auto is_it = [&name](const DeviceParameter& one) { return one.name == name; };
      EXPECT_EQ(std::count_if(equation->parameters.begin(), equation->parameters.end(), is_it), 1)
          << name;
    }
  }
}

TEST(ModelTerms, OperatorsBindAsInR) {
  EXPECT_THAT(term_names(parsed("y ~ a + b:c*d")),
              ElementsAre("(Intercept)", "a", "d", "b:c", "b:c:d"));
  EXPECT_THAT(term_names(parsed("b:a + a")), ElementsAre("(Intercept)", "a", "b:a"));
  EXPECT_THAT(term_names(parsed("x1:x1 + x1 + X1")), ElementsAre("(Intercept)", "x1"));
  EXPECT_THAT(term_names(parsed("y ~ 1")), ElementsAre("(Intercept)"));
}

TEST(ModelTerms, TextOfAFormulaIsReadAsTheSameFormula) {
  const ModelFormula formula = formula_of(kSolidStateEquation);
  EXPECT_EQ(parsed("y ~ x1 + x3:x1 + x3").text(), "y ~ x1 + x3 + x1:x3");
  EXPECT_EQ(parsed(formula.text()).terms, formula.terms);
  EXPECT_EQ(parsed("1").text(), "y ~ 1");
}

TEST(ModelTerms, UnreadableFormulasAreRefused) {
  for (const char* text : {"", "y ~", "y = x1 +", "x1 ** x2", "(x1 + x2)*x3", "x1 - x2", "x1^2",
                           "2x", "x 1", "y + z = x", "y = x = z", "x1::x2"}) {
    const Result<ModelFormula> formula = parse_formula(text);
    ASSERT_FALSE(formula.is_ok()) << text;
    EXPECT_EQ(formula.status().code(), StatusCode::kInvalid) << text;
  }
  std::string many = "a0";
  for (std::size_t index = 1; index < ModelTerm::kParametersMax; ++index) {
    many += "+a" + std::to_string(index);
  }
  EXPECT_TRUE(parse_formula(many).is_ok());
  EXPECT_THAT(parse_formula(many + "+b").status().message(), HasSubstr("at most 16"));
}

TEST(ModelTerms, ATermIsTheProductOfItsParameters) {
  const ModelFormula formula = parsed("x1*x3*x4");
  const std::vector<double> point{2, 3, 5};
  std::vector<double> values;
  for (const ModelTerm term : formula.terms) values.push_back(term.value(point));
  EXPECT_THAT(values, ElementsAre(1, 2, 3, 5, 6, 10, 15, 30));
}

TEST(ModelTerms, ATermLeavesOnlyBeforeTheTermsThatItIsPartOf) {
  const ModelFormula widest = parsed("x1*x3*x4 + x5");
  EXPECT_THAT(names_in(widest, removable_terms(widest)), ElementsAre("x5", "x1:x3:x4"));
  const ModelFormula smaller = without(widest, widest.terms.back());
  EXPECT_THAT(names_in(smaller, removable_terms(smaller)),
              ElementsAre("x5", "x1:x3", "x1:x4", "x3:x4"));
  EXPECT_THAT(removable_terms(parsed("1")), IsEmpty());
}

TEST(ModelTerms, ATermReturnsOnlyBehindItsParts) {
  const ModelFormula widest = parsed("x1*x3*x4");
  ModelFormula formula{widest.parameters, {ModelTerm()}};
  EXPECT_THAT(names_in(widest, addable_terms(formula, widest)), ElementsAre("x1", "x3", "x4"));
  formula = with(formula, ModelTerm::of(2), widest);
  formula = with(formula, ModelTerm::of(0), widest);
  EXPECT_THAT(term_names(formula), ElementsAre("(Intercept)", "x1", "x4"));
  EXPECT_THAT(names_in(widest, addable_terms(formula, widest)), ElementsAre("x3", "x1:x4"));
  EXPECT_THAT(addable_terms(widest, widest), IsEmpty());
}

}  // namespace
}  // namespace cairn
