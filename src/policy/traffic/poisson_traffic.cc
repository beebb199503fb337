// SPDX-License-Identifier: Apache-2.0
#include "policy/traffic/poisson_traffic.h"

#include "base/check.h"
#include "policy/traffic/random_numbers.h"

namespace cairn {

PoissonTraffic::PoissonTraffic(PoissonTrafficShape shape, std::uint64_t seed)
    : shape_(shape), random_(seed) {
  CAIRN_CHECK(shape.repeats >= 0 && shape.lifetime > 0);
}

PageUse PoissonTraffic::next() {
  if (uses_.empty() || arrival_.time <= uses_.top().time) return take_arrival();
  const PageUse use = uses_.top();
  uses_.pop();
  return use;
}

PageUse PoissonTraffic::take_arrival() {
  const PageUse first = arrival_;
  for (std::uint64_t left = poisson_number(random_, shape_.repeats); left > 0; --left)
    uses_.push({first.time + exponential_number(random_, shape_.lifetime), first.page});
  arrival_ = {first.time + exponential_number(random_, 1), first.page + 1};
  CAIRN_DCHECK(arrival_.time >= first.time);
  return first;
}

}  // namespace cairn
