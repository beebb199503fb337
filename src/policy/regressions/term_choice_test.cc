// SPDX-License-Identifier: Apache-2.0
#include "policy/regressions/term_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "policy/regressions/testing/noise.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// R's data set `swiss` (Mosteller and Tukey 1977): fertility, agriculture, examination, education,
// catholic, infant mortality, of 47 provinces in 1888.
constexpr std::array<std::array<double, 6>, 47> kSwiss{{
    {80.2, 17.0, 15, 12, 9.96, 22.2},  {83.1, 45.1, 6, 9, 84.84, 22.2},
    {92.5, 39.7, 5, 5, 93.40, 20.2},   {85.8, 36.5, 12, 7, 33.77, 20.3},
    {76.9, 43.5, 17, 15, 5.16, 20.6},  {76.1, 35.3, 9, 7, 90.57, 26.6},
    {83.8, 70.2, 16, 7, 92.85, 23.6},  {92.4, 67.8, 14, 8, 97.16, 24.9},
    {82.4, 53.3, 12, 7, 97.67, 21.0},  {82.9, 45.2, 16, 13, 91.38, 24.4},
    {87.1, 64.5, 14, 6, 98.61, 24.5},  {64.1, 62.0, 21, 12, 8.52, 16.5},
    {66.9, 67.5, 14, 7, 2.27, 19.1},   {68.9, 60.7, 19, 12, 4.43, 22.7},
    {61.7, 69.3, 22, 5, 2.82, 18.7},   {68.3, 72.6, 18, 2, 24.20, 21.2},
    {71.7, 34.0, 17, 8, 3.30, 20.0},   {55.7, 19.4, 26, 28, 12.11, 20.2},
    {54.3, 15.2, 31, 20, 2.15, 10.8},  {65.1, 73.0, 19, 9, 2.84, 20.0},
    {65.5, 59.8, 22, 10, 5.23, 18.0},  {65.0, 55.1, 14, 3, 4.52, 22.4},
    {56.6, 50.9, 22, 12, 15.14, 16.7}, {57.4, 54.1, 20, 6, 4.20, 15.3},
    {72.5, 71.2, 12, 1, 2.40, 21.0},   {74.2, 58.1, 14, 8, 5.23, 23.8},
    {72.0, 63.5, 6, 3, 2.56, 18.0},    {60.5, 60.8, 16, 10, 7.72, 16.3},
    {58.3, 26.8, 25, 19, 18.46, 20.9}, {65.4, 49.5, 15, 8, 6.10, 22.5},
    {75.5, 85.9, 3, 2, 99.71, 15.1},   {69.3, 84.9, 7, 6, 99.68, 19.8},
    {77.3, 89.7, 5, 2, 100.00, 18.3},  {70.5, 78.2, 12, 6, 98.96, 19.4},
    {79.4, 64.9, 7, 3, 98.22, 20.2},   {65.0, 75.9, 9, 9, 99.06, 17.8},
    {92.2, 84.6, 3, 3, 99.46, 16.3},   {79.3, 63.1, 13, 13, 96.83, 18.1},
    {70.4, 38.4, 26, 12, 5.62, 20.3},  {65.7, 7.7, 29, 11, 13.79, 20.5},
    {72.7, 16.7, 22, 13, 11.22, 18.9}, {64.4, 17.6, 35, 32, 16.92, 23.0},
    {77.6, 37.6, 15, 7, 4.97, 20.0},   {67.6, 18.7, 25, 7, 8.65, 19.5},
    {35.0, 1.2, 37, 53, 42.34, 18.0},  {44.7, 46.6, 16, 29, 50.43, 18.2},
    {42.8, 27.7, 22, 29, 58.33, 19.3},
}};
// extractAIC() of R, which step() prints, has the constants of the likelihood left out.
double printed_by_step(double aic, double rows) {
  return aic - rows * (std::log(2 * M_PI) + 1) - 2;
}

ChosenTerms chosen_from(std::string_view formula, const Observations& observations) {
  const Result<ModelFormula> widest = parse_formula(formula);
  EXPECT_TRUE(widest.is_ok());
  Result<ChosenTerms> chosen = choose_terms(*widest, observations);
  EXPECT_TRUE(chosen.is_ok()) << chosen.status().message();
  return *chosen;
}

std::vector<std::string> changes_of(const ChosenTerms& chosen) {
  std::vector<std::string> changes;
  for (const ChoiceStep& step : chosen.steps) changes.push_back(step.change);
  return changes;
}

// The response is that of `formula` with all slopes 1, and noise.
Observations planted_rows(std::string_view formula, double noise, std::uint64_t seed) {
  const Result<ModelFormula> planted = parse_formula(formula);
  NoiseSource source(seed);
  Observations observations(planted->parameters.size());
  for (int row = 0; row < 200; ++row) {
    std::vector<double> point;
    for (std::size_t index = 0; index < planted->parameters.size(); ++index) {
      point.push_back(source.between(0, 10));
    }
    double response = noise * source.normal();
    for (const ModelTerm term : planted->terms) response += term.value(point);
    observations.add(point, response);
  }
  return observations;
}

TEST(TermChoice, SwissIsAsRPrintsIt) {
  Observations observations(5);
  for (const auto& row : kSwiss) observations.add(std::span(row).subspan(1), row[0]);
  const Result<ModelFormula> all = parse_formula("fertility ~ agr + exa + edu + cat + inf");
  const Result<LinearRegression> full = LinearRegression::fit(*all, observations);
  EXPECT_NEAR(full->coefficients()[0].estimate, 66.91518, 5e-6);
  EXPECT_NEAR(full->coefficients()[5].estimate, 1.07705, 5e-6);
  EXPECT_NEAR(full->summary().aic, 326.0716, 5e-5);
  EXPECT_NEAR(printed_by_step(full->summary().aic, 47), 190.69, 5e-3);
  const ChosenTerms chosen = chosen_from(all->text(), observations);
  EXPECT_THAT(changes_of(chosen), ElementsAre("- exa"));
  EXPECT_NEAR(printed_by_step(chosen.regression.summary().aic, 47), 189.86, 5e-3);
  EXPECT_NEAR(chosen.regression.summary().residual_sum_of_squares, 2158.1, 5e-2);
}

TEST(TermChoice, PlantedTermsAreFoundInNoise) {
  unsigned exact = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Observations observations = planted_rows("x1 + x2 + x1:x2 + x3 + x4", 3, seed);
    const ChosenTerms chosen = chosen_from("x1*x2*x3 + x4*x2*x1", observations);
    const ModelFormula& formula = chosen.regression.formula();
    for (const Coefficient& row : chosen.regression.coefficients()) {
      const bool is_planted = row.term.degree() == 1 || row.name == "x1:x2";
      if (!is_planted) continue;
      EXPECT_NEAR(row.estimate, 1, 6 * row.standard_error) << row.name;
    }
    const Result<ModelFormula> planted = parse_formula("x1 + x2 + x1:x2 + x3 + x4");
    for (const ModelTerm term : planted->terms) EXPECT_TRUE(formula.has(term)) << seed;
    exact += formula.terms.size() == planted->terms.size() ? 1 : 0;
  }
  // The AIC keeps a useless term with a chance of 16 %, and there are six.
  EXPECT_GE(exact, 5U);
}

TEST(TermChoice, AnInteractionKeepsItsUselessParts) {
  NoiseSource source(3);
  Observations observations(2);
  for (int row = 0; row < 100; ++row) {
    const std::array<double, 2> point{source.between(-5, 5), source.between(-5, 5)};
    observations.add(point, point[0] * point[1] + 0.1 * source.normal());
  }
  const ChosenTerms chosen = chosen_from("x1*x2", observations);
  EXPECT_THAT(chosen.steps, IsEmpty());
  EXPECT_EQ(chosen.regression.formula().text(), "y ~ x1 + x2 + x1:x2");
}

TEST(TermChoice, EachStepLowersTheAic) {
  const ChosenTerms chosen =
      chosen_from("x1*x2*x3*x4", planted_rows("x1 + x2 + x3 + x4 + x3:x4", 20, 12));
  ASSERT_GT(chosen.steps.size(), 3U);
  for (std::size_t step = 1; step < chosen.steps.size(); ++step) {
    EXPECT_LT(chosen.steps[step].aic, chosen.steps[step - 1].aic);
  }
  EXPECT_DOUBLE_EQ(chosen.steps.back().aic, chosen.regression.summary().aic);
}

TEST(TermChoice, OnlyTheInterceptIsLeftWhereNothingMatters) {
  Observations observations(1);
  for (int row = 0; row < 100; ++row) {
    const double x1 = row;
    observations.add({&x1, 1}, row % 2);
  }
  EXPECT_EQ(chosen_from("x1", observations).regression.formula().text(), "y ~ 1");
}

TEST(TermChoice, TermsThatCannotBeEstimatedGoFirst) {
  NoiseSource source(5);
  Observations observations(2);
  for (int row = 0; row < 40; ++row) {
    const std::array<double, 2> point{source.between(0, 9), 4};
    observations.add(point, 3 * point[0] + source.normal());
  }
  const ChosenTerms chosen = chosen_from("x1*x2", observations);
  EXPECT_THAT(changes_of(chosen), ElementsAre("- x1:x2", "- x2"));
  EXPECT_THAT(chosen.regression.dropped_terms(), IsEmpty());
}

TEST(TermChoice, FewerRowsThanTermsAreRefused) {
  Observations observations(2);
  for (const double x1 : {1.0, 2.0, 3.0}) observations.add(std::array{x1, x1 * x1}, x1);
  EXPECT_EQ(choose_terms(*parse_formula("x1*x2"), observations).status().code(),
            StatusCode::kInvalid);
}

}  // namespace
}  // namespace cairn
