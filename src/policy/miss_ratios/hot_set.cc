// SPDX-License-Identifier: Apache-2.0
#include "policy/miss_ratios/hot_set.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"

namespace cairn {

double hot_set_pages(std::vector<std::uint32_t> uses, double weight, double references,
                     double share) {
  CAIRN_CHECK(share > 0 && share <= 1);
  CAIRN_DCHECK(weight >= 1);
  std::sort(uses.begin(), uses.end());
  const double others = references - share * references;
  double left_out = 0;
  std::size_t count = 0;
  while (count < uses.size() && left_out + uses[count] * weight <= others) {
    left_out += uses[count++] * weight;
  }
  CAIRN_DCHECK(left_out <= others);
  return static_cast<double>(uses.size() - count) * weight;
}

}  // namespace cairn
