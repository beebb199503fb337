// SPDX-License-Identifier: Apache-2.0
#include "service/capacity/read_balance.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::node {
namespace {

// More or less than that is no accident.
constexpr double kNoise = 0.03;
constexpr unsigned kWaitMax = 64;
static_assert(ReadBalance::kStep <= ReadBalance::kShareMax);

}  // namespace

std::uint32_t ReadBalance::step(double from_tier, double around, double bandwidth) {
  const double total = from_tier + around;
  const double before = total_before_;
  total_before_ = total;
  // Less than the tier alone could give: nobody asks for more, or what goes around holds it up.
  if (bandwidth <= 0 || total < kSaturated * bandwidth) return give_up();
  if (share_ == 0) {
    if (waits_left_ != 0) {
      --waits_left_;
      return 0;
    }
    is_rising_ = true;
  } else if (before != 0) {
    if (total < before * (1 - kNoise)) {
      is_rising_ = !is_rising_;
    } else if (total < before * (1 + kNoise)) {
      is_rising_ = false;
    }
  }
  if (!is_rising_ && share_ <= kStep) return give_up();
  share_ = is_rising_ ? std::min(share_ + kStep, kShareMax) : share_ - kStep;
  CAIRN_CHECK(share_ <= kShareMax);
  if (share_ > kStep) wait_ = 1;
  return share_;
}

// It is tried again later.
std::uint32_t ReadBalance::give_up() {
  if (share_ != 0) {
    waits_left_ = wait_;
    wait_ = std::min(2 * wait_, kWaitMax);
  }
  return share_ = 0;
}

}  // namespace cairn::node
