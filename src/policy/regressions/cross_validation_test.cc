// SPDX-License-Identifier: Apache-2.0
#include "policy/regressions/cross_validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "policy/regressions/linear_regression.h"
#include "policy/regressions/testing/noise.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

ModelTrainer trainer_of(std::string_view formula) {
  return [terms = *parse_formula(formula)](const Observations& training) -> Result<PointModel> {
    const Result<LinearRegression> fit = LinearRegression::fit(terms, training);
    if (!fit) return fit.status();
    return PointModel([model = *fit](std::span<const double> p) { return model.predict(p).value; });
  };
}

// x1 alone matters; there is much noise.
Observations noisy_rows(int rows) {
  NoiseSource source(9);
  Observations observations(4);
  for (int row = 0; row < rows; ++row) {
    const std::array<double, 4> point{source.between(0, 10), source.between(0, 10),
                                      source.between(0, 10), source.between(0, 10)};
    observations.add(point, 20 + point[0] + 2 * source.normal());
  }
  return observations;
}

TEST(CrossValidation, FoldsAreEvenAndSeeded) {
  const std::vector<std::size_t> folds = deal_folds(407, {20, 5});
  for (std::size_t fold = 0; fold < 20; ++fold) {
    const auto size = std::count(folds.begin(), folds.end(), fold);
    EXPECT_TRUE(size == 20 || size == 21) << fold;
  }
  EXPECT_EQ(folds, deal_folds(407, {20, 5}));
  EXPECT_NE(folds, deal_folds(407, {20, 6}));
  EXPECT_FALSE(std::is_sorted(folds.begin(), folds.end()));
}

TEST(CrossValidation, NineOfTenMeasurementsAreWithinTheFactor) {
  // A model of the constant 10: eighteen rows are off by a factor of 2 to either side, two by 5.
  Observations observations(1);
  for (int row = 0; row < 20; ++row) {
    const double response = row < 2 ? 50 : row % 2 == 0 ? 20 : 5;
    observations.add(std::array<double, 1>{static_cast<double>(row)}, response);
  }
  const auto constant = [](double value) {
    return [value](const Observations&) -> Result<PointModel> {
      return PointModel([value](std::span<const double>) { return value; });
    };
  };
  EXPECT_DOUBLE_EQ(cross_validate(constant(10), observations)->factor_of_nine_tenths, 2);
  EXPECT_DOUBLE_EQ(cross_validate(constant(4), observations)->factor_of_nine_tenths, 5);
  EXPECT_DOUBLE_EQ(cross_validate(constant(0), observations)->factor_of_nine_tenths,
                   CrossValidatedError::kFactorMax);
}

TEST(CrossValidation, AnOverfitShows) {
  const Observations observations = noisy_rows(24);
  const ModelFormula wide = *parse_formula("x1*x2*x3*x4");
  const double fitted = LinearRegression::fit(wide, observations)->summary().r_squared;
  const auto error_wide = cross_validate(trainer_of("x1*x2*x3*x4"), observations);
  const auto error_narrow = cross_validate(trainer_of("x1 + x2 + x3 + x4"), observations);
  ASSERT_TRUE(error_wide.is_ok());
  EXPECT_GT(fitted, 0.8) << "looks well";
  EXPECT_LT(error_wide->r_squared, 0.2) << "and is not";
  EXPECT_GT(error_narrow->r_squared, error_wide->r_squared + 0.3);
  EXPECT_LT(error_narrow->root_mean_square, error_wide->root_mean_square);
}

TEST(CrossValidation, LeavingOneOutAgreesWithTheFormula) {
  // With as many folds as rows, each error is residual / (1 - leverage); for a mean of four rows
  // the leverage is 1/4, so the errors are 4, 8/3, 0 and 20/3.
  Observations observations(1);
  for (const double x1 : {1.0, 2.0, 4.0, 9.0}) observations.add({&x1, 1}, x1);
  const auto error = cross_validate(trainer_of("1"), observations, {20, 1});
  ASSERT_TRUE(error.is_ok());
  EXPECT_EQ(error->plan.folds, 4U) << "not more than rows";
  const double squares = (9 + 4 + 0 + 25) * 16.0 / 9;
  EXPECT_NEAR(error->root_mean_square, std::sqrt(squares / 4), 1e-12);
  EXPECT_NEAR(error->r_squared, 1 - 16.0 / 9, 1e-12);
  EXPECT_NEAR(error->median_relative, (4.0 / 3 + 20.0 / 27) / 2, 1e-12);
}

TEST(CrossValidation, TheTextNamesFoldsAndSeed) {
  const auto error = cross_validate(trainer_of("x1 + x2 + x3 + x4"), noisy_rows(60), {20, 77});
  EXPECT_THAT(error->text(), HasSubstr("K = 20, seed 77, 60 rows: R2 0."));
}

TEST(CrossValidation, TooFewRowsAreRefused) {
  EXPECT_EQ(cross_validate(trainer_of("x1"), noisy_rows(1)).status().code(), StatusCode::kInvalid);
  const auto error = cross_validate(trainer_of("x1*x2*x3*x4"), noisy_rows(17));
  EXPECT_THAT(error.status().message(), HasSubstr("16 terms need at least 17 rows; there are 16"));
}

}  // namespace
}  // namespace cairn
