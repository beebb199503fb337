// SPDX-License-Identifier: Apache-2.0
#include "policy/regressions/student_t.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cairn {
namespace {

TEST(StudentT, QuantilesAreThoseOfPrintedTables) {
  EXPECT_NEAR(student_quantile(0.95, 1), 6.313752, 1e-6);
  EXPECT_NEAR(student_quantile(0.95, 9), 1.833113, 1e-6);
  EXPECT_NEAR(student_quantile(0.95, 120), 1.657651, 1e-6);
  EXPECT_NEAR(student_quantile(0.05, 9), -1.833113, 1e-6);
}

// A printed t value is within half of its last digit, so the p value is between two.
void expect_printed(double t_value, double p_value, std::size_t degrees_of_freedom) {
  const double digit = std::pow(10, std::floor(std::log10(p_value)) - 2);  // the third one
  EXPECT_GE(p_value + digit / 2, two_sided_p(std::abs(t_value) + 5e-4, degrees_of_freedom));
  EXPECT_LE(p_value - digit / 2, two_sided_p(std::abs(t_value) - 5e-4, degrees_of_freedom));
}

// The tables do not say how many experiments they are of ("400", "200"); their p values fit only
// these degrees of freedom: 406 to 415 in table 1, 399 to 419 in table 2, 174 in table 3 and 134 in
// table 4.
TEST(StudentT, ProbabilitiesAreThoseOfThePapersTables) {
  expect_printed(-2.917, 0.00373, 410);
  expect_printed(4.706, 3.46e-06, 410);
  expect_printed(2.385, 0.017533, 410);
  expect_printed(-3.433, 0.000658, 410);
  expect_printed(7.586, 1.90e-12, 174);
  expect_printed(-4.560, 9.61e-06, 174);
  expect_printed(6.312, 3.75e-09, 134);
  expect_printed(2.808, 0.00573, 134);
  EXPECT_LT(two_sided_p(14.340, 410), 2e-16);
  EXPECT_LT(two_sided_p(13.061, 410), 2e-16);
}

TEST(StudentT, TheEndsAreExact) {
  EXPECT_NEAR(two_sided_p(0, 5), 1, 1e-15);
  EXPECT_EQ(two_sided_p(HUGE_VAL, 5), 0);
  EXPECT_EQ(two_sided_p(-HUGE_VAL, 5), 0);
  EXPECT_NEAR(two_sided_p(1, 1), 0.5, 1e-14) << "a Cauchy distribution";
}

}  // namespace
}  // namespace cairn
