// SPDX-License-Identifier: Apache-2.0
// Student's t distribution, by Boost.Math: the one place that pays for compiling it.
//
// Thread safety: pure functions. Units: standard errors.
#pragma once

#include <cstddef>

namespace cairn {

// How likely |t| or more is where the true value is 0; 0 for an infinite t.
// Requires: degrees_of_freedom > 0, t is a number.
double two_sided_p(double t_value, std::size_t degrees_of_freedom);

// The t value below which that part of the distribution lies.
// Requires: degrees_of_freedom > 0, 0 < probability < 1.
double student_quantile(double probability, std::size_t degrees_of_freedom);

}  // namespace cairn
