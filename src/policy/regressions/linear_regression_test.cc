// SPDX-License-Identifier: Apache-2.0
#include "policy/regressions/linear_regression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <utility>

#include "base/random_source.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// NIST StRD, Longley (1967): the response, then six parameters; of higher difficulty, because the
// parameters nearly depend on each other.
constexpr std::array<std::array<double, 7>, 16> kLongley{{
    {60323, 83.0, 234289, 2356, 1590, 107608, 1947},
    {61122, 88.5, 259426, 2325, 1456, 108632, 1948},
    {60171, 88.2, 258054, 3682, 1616, 109773, 1949},
    {61187, 89.5, 284599, 3351, 1650, 110929, 1950},
    {63221, 96.2, 328975, 2099, 3099, 112075, 1951},
    {63639, 98.1, 346999, 1932, 3594, 113270, 1952},
    {64989, 99.0, 365385, 1870, 3547, 115094, 1953},
    {63761, 100.0, 363112, 3578, 3350, 116219, 1954},
    {66019, 101.2, 397469, 2904, 3048, 117388, 1955},
    {67857, 104.6, 419180, 2822, 2857, 118734, 1956},
    {68169, 108.4, 442769, 2936, 2798, 120445, 1957},
    {66513, 110.8, 444546, 4681, 2637, 121950, 1958},
    {68655, 112.6, 482704, 3813, 2552, 123366, 1959},
    {69564, 114.2, 502601, 3931, 2514, 125368, 1960},
    {69331, 115.7, 518173, 4806, 2572, 127852, 1961},
    {70551, 116.9, 554894, 4007, 2827, 130081, 1962},
}};
// Certified estimates and standard errors, the intercept first.
constexpr std::array<std::pair<double, double>, 7> kLongleyCertified{{
    {-3482258.63459582, 890420.383607373},
    {15.0618722713733, 84.9149257747669},
    {-0.358191792925910E-01, 0.334910077722432E-01},
    {-2.02022980381683, 0.488399681651699},
    {-1.03322686717359, 0.214274163161675},
    {-0.511041056535807E-01, 0.226073200069370},
    {1829.15146461355, 455.478499142212},
}};

// Speed in miles per hour, and feet to stop (R's data set `cars`; Ezekiel 1930).
constexpr std::array<std::pair<double, double>, 50> kCars{
    {{4, 2},   {4, 10},  {7, 4},   {7, 22},   {8, 16},  {9, 10},  {10, 18}, {10, 26}, {10, 34},
     {11, 17}, {11, 28}, {12, 14}, {12, 20},  {12, 24}, {12, 28}, {13, 26}, {13, 34}, {13, 34},
     {13, 46}, {14, 26}, {14, 36}, {14, 60},  {14, 80}, {15, 20}, {15, 26}, {15, 54}, {16, 32},
     {16, 40}, {17, 32}, {17, 40}, {17, 50},  {18, 42}, {18, 56}, {18, 76}, {18, 84}, {19, 36},
     {19, 46}, {19, 68}, {20, 32}, {20, 48},  {20, 52}, {20, 56}, {20, 64}, {22, 66}, {23, 54},
     {24, 70}, {24, 92}, {24, 93}, {24, 120}, {25, 85}}};

LinearRegression fitted_model(std::string_view formula, const Observations& observations) {
  Result<ModelFormula> terms = parse_formula(formula);
  EXPECT_TRUE(terms.is_ok());
  Result<LinearRegression> fit = LinearRegression::fit(*terms, observations);
  EXPECT_TRUE(fit.is_ok()) << fit.status().message();
  return *fit;
}

Observations longley_rows() {
  Observations observations(6);
  for (const auto& row : kLongley) observations.add(std::span(row).subspan(1), row[0]);
  return observations;
}

Observations cars_rows() {
  Observations observations(1);
  for (const auto& [speed, distance] : kCars) observations.add({&speed, 1}, distance);
  return observations;
}

void expect_relative(double value, double expected, double tolerance, const std::string& what) {
  EXPECT_NEAR(value, expected, std::abs(expected) * tolerance) << what;
}

TEST(LinearRegression, LongleyHasTheCertifiedValues) {
  const LinearRegression model = fitted_model("Y = x1+x2+x3+x4+x5+x6", longley_rows());
  ASSERT_EQ(model.coefficients().size(), kLongleyCertified.size());
  for (std::size_t index = 0; index < kLongleyCertified.size(); ++index) {
    const Coefficient& row = model.coefficients()[index];
    const auto& [estimate, error] = kLongleyCertified[index];
    expect_relative(row.estimate, estimate, 1e-9, row.name);
    expect_relative(row.standard_error, error, 1e-9, row.name);
    expect_relative(row.t_value, estimate / error, 1e-9, row.name);
  }
  const FitSummary& summary = model.summary();
  expect_relative(summary.residual_standard_error, 304.854073561965, 1e-9, "residual error");
  expect_relative(summary.residual_sum_of_squares, 836424.055505915, 1e-9, "residual squares");
  expect_relative(summary.r_squared, 0.995479004577296, 1e-12, "R2");
  EXPECT_EQ(summary.degrees_of_freedom, 9U);
  EXPECT_THAT(model.dropped_terms(), IsEmpty()) << "nearly dependent is not dependent";
}

TEST(LinearRegression, CarsAreAsRPrintsThem) {
  const LinearRegression model = fitted_model("dist ~ speed", cars_rows());
  const Coefficient& intercept = model.coefficients()[0];
  const Coefficient& slope = model.coefficients()[1];
  EXPECT_NEAR(intercept.estimate, -17.5791, 5e-5);
  EXPECT_NEAR(intercept.standard_error, 6.7584, 5e-5);
  EXPECT_NEAR(intercept.t_value, -2.601, 5e-4);
  EXPECT_NEAR(intercept.p_value, 0.0123, 5e-5);
  EXPECT_NEAR(slope.estimate, 3.9324, 5e-5);
  EXPECT_NEAR(slope.standard_error, 0.4155, 5e-5);
  EXPECT_NEAR(slope.t_value, 9.464, 5e-4);
  expect_relative(slope.p_value, 1.49e-12, 5e-3, "p");
  EXPECT_NEAR(model.summary().residual_standard_error, 15.38, 5e-3);
  EXPECT_NEAR(model.summary().r_squared, 0.6511, 5e-5);
  EXPECT_NEAR(model.summary().adjusted_r_squared, 0.6438, 5e-5);
  EXPECT_NEAR(model.summary().aic, 419.1569, 5e-5);
}

// R: predict(lm(dist ~ speed, cars), data.frame(speed = 10), interval = "prediction", level = 0.9),
// checked by hand: t(0.95, 48) = 1.677224, s = 15.37959, mean speed 15.4, squares around it 1370.
TEST(LinearRegression, NinetyOfAHundredMeasurementsAreInTheInterval) {
  const LinearRegression model = fitted_model("dist ~ speed", cars_rows());
  const std::array<double, 1> speed{10};
  const Prediction prediction = model.predict(speed);
  const double reach = 1.677224 * 15.37959 * std::sqrt(1 + 1 / 50.0 + 5.4 * 5.4 / 1370);
  EXPECT_NEAR(prediction.value, 21.7450, 5e-4);
  EXPECT_NEAR(prediction.upper - prediction.value, reach, 1e-4);
  EXPECT_NEAR(prediction.value - prediction.lower, reach, 1e-4);
}

TEST(LinearRegression, ExtrapolationIsMarked) {
  const LinearRegression model = fitted_model("Y = x1+x2+x3+x4+x5+x6", longley_rows());
  EXPECT_EQ(model.training_ranges()[0].lowest, 83.0);
  EXPECT_EQ(model.training_ranges()[0].highest, 116.9);
  std::vector<double> point(kLongley[3].begin() + 1, kLongley[3].end());
  EXPECT_FALSE(model.predict(point).is_extrapolation);
  point[5] = 1962;
  EXPECT_TRUE(model.is_inside_range(point)) << "the edge was measured";
  for (const double outside : {1962.5, 1946.0, std::nan("")}) {
    point[5] = outside;
    EXPECT_FALSE(model.is_inside_range(point)) << outside;
    EXPECT_TRUE(model.predict(point).is_extrapolation) << outside;
  }
}

TEST(LinearRegression, ProductsOverTwentyDecadesAreRecovered) {
  const ModelFormula formula = formula_of(kSolidStateEquation);
  Observations observations(4);
  RandomSource random(7);
  for (int row = 0; row < 400; ++row) {
    const double threads = 8 << random.below(4);
    const double bytes = 512 << random.below(10);
    const double requests = 1000 * std::pow(4000, random.below(1000) / 999.0);
    const double range = 5e8 * std::pow(1000, random.below(1000) / 999.0);
    const std::array<double, 4> point{threads, bytes, requests, range};
    const double seconds = 2e-10 * threads * bytes * requests + 1e-20 * bytes * requests * range;
    observations.add(point, seconds);
  }
  const LinearRegression model = fitted_model(kSolidStateEquation.formula, observations);
  EXPECT_THAT(model.dropped_terms(), IsEmpty());
  for (const Coefficient& row : model.coefficients()) {
    if (row.name == "x1:x3:x4") expect_relative(row.estimate, 2e-10, 1e-6, row.name);
    if (row.name == "x3:x4:x5") expect_relative(row.estimate, 1e-20, 1e-6, row.name);
  }
  EXPECT_NEAR(model.summary().r_squared, 1, 1e-12);
  EXPECT_EQ(model.coefficients().size(), formula.terms.size());
}

TEST(LinearRegression, DependentColumnsAreDroppedAndNamed) {
  Observations observations(3);
  for (int row = 0; row < 12; ++row) {
    const double x1 = row;
    const std::array<double, 3> point{x1, 3 * x1 + 2, 5};
    observations.add(point, 4 + 2 * x1 + (row % 3 - 1));
  }
  const LinearRegression model = fitted_model("Y = x1 + x2 + x3", observations);
  std::vector<std::string> dropped;
  for (const ModelTerm term : model.dropped_terms())
    dropped.push_back(model.formula().name_of(term));
  EXPECT_THAT(dropped, ElementsAre("x2", "x3")) << "the later one, and the constant";
  EXPECT_EQ(model.summary().degrees_of_freedom, 10U);
  EXPECT_THAT(model.table(), HasSubstr("dropped, because they depend on terms before them: x2 x3"));
  const ModelFormula smaller = without(model.formula(), ModelTerm::of(2));
  const Result<LinearRegression> alone = LinearRegression::fit(smaller, observations);
  EXPECT_DOUBLE_EQ(model.summary().aic, alone->summary().aic) << "dropped terms cost nothing";
}

TEST(LinearRegression, FewerRowsThanTermsAreRefused) {
  Observations observations(1);
  const Result<ModelFormula> formula = parse_formula("Y = x1");
  for (const double x1 : {1.0, 2.0}) observations.add({&x1, 1}, x1);
  const Result<LinearRegression> fit = LinearRegression::fit(*formula, observations);
  ASSERT_FALSE(fit.is_ok());
  EXPECT_EQ(fit.status().code(), StatusCode::kInvalid);
  EXPECT_EQ(fit.status().message(), "2 terms need at least 3 rows; there are 2");
}

TEST(LinearRegression, NumbersThatAreNotFiniteAreRefused) {
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    Observations observations = cars_rows();
    observations.add({&bad, 1}, 1);
    const auto fit = LinearRegression::fit(*parse_formula("Y = x1"), observations);
    ASSERT_FALSE(fit.is_ok());
    EXPECT_THAT(fit.status().message(), HasSubstr("row 50"));
  }
  Observations large = cars_rows();
  large.add(std::array{1.0}, 1e200);
  EXPECT_FALSE(LinearRegression::fit(*parse_formula("Y = x1"), large).is_ok());
}

TEST(LinearRegression, AnExactFitAndAConstantResponseHaveNoStrayNumbers) {
  Observations constant(1);
  for (const double x1 : {1.0, 2.0, 3.0, 4.0}) constant.add({&x1, 1}, 5);
  const LinearRegression model = fitted_model("Y = x1", constant);
  EXPECT_NEAR(model.coefficients()[0].estimate, 5, 1e-12);
  EXPECT_EQ(model.summary().r_squared, 0);
  for (const Coefficient& row : model.coefficients()) EXPECT_FALSE(std::isnan(row.p_value));
  const LinearRegression mean_only = fitted_model("Y = 1", cars_rows());
  EXPECT_NEAR(mean_only.coefficients()[0].estimate, 42.98, 1e-9);
}

TEST(LinearRegression, TheTableLooksLikeThePapers) {
  EXPECT_EQ(fitted_model("dist ~ speed", cars_rows()).table(),
            "              Estimate  Std. Error  t value  Pr(>|t|)\n"
            "(Intercept) -1.758e+01   6.758e+00   -2.601   0.01232\n"
            "speed        3.932e+00   4.155e-01    9.464  1.49e-12\n"
            "residual standard error 15.38 on 48 degrees of freedom\n"
            "R2 0.6511, adjusted 0.6438; AIC 419.2; 50 rows\n");
}

}  // namespace
}  // namespace cairn
