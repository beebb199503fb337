// SPDX-License-Identifier: Apache-2.0
#include "policy/regressions/student_t.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "base/check.h"

namespace cairn {
namespace {

// Doubles are exact enough; by default Boost computes with long doubles.
using DoublePolicy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
using StudentT = boost::math::students_t_distribution<double, DoublePolicy>;

}  // namespace

double two_sided_p(double t_value, std::size_t degrees_of_freedom) {
  CAIRN_DCHECK(degrees_of_freedom > 0);
  CAIRN_DCHECK(!std::isnan(t_value));
  if (std::isinf(t_value)) return 0;
  const StudentT distribution(static_cast<double>(degrees_of_freedom));
  return 2 * boost::math::cdf(boost::math::complement(distribution, std::abs(t_value)));
}

double student_quantile(double probability, std::size_t degrees_of_freedom) {
  CAIRN_DCHECK(degrees_of_freedom > 0);
  CAIRN_DCHECK(probability > 0 && probability < 1);
  return boost::math::quantile(StudentT(static_cast<double>(degrees_of_freedom)), probability);
}

}  // namespace cairn
