// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/admission.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace cairn {
namespace {

// No estimate from a few hundred segments tells less than one in fifty from nothing.
constexpr double kReadsPerWriteMin = 0.02;

// The pace at which returns fade; overdue segments stand against the usual returns.
constexpr double kReturnsFade = 1.0 / 64;

std::uint64_t one_in(std::uint64_t room_below, std::uint64_t waiting_max) {
  return std::bit_ceil((room_below + waiting_max - 1) / waiting_max);
}

}  // namespace

bool is_worth_admitting(double chance, const AdmissionCosts& costs) {
  const double reads = chance < 1 ? chance / (1 - chance) : 1e9;
  return reads >= kReadsPerWriteMin && reads * costs.seconds_saved > costs.seconds_to_write;
}

ReturnRates::ReturnRates(std::uint32_t room, std::uint64_t room_below)
    : overdue_after_(std::max<std::uint64_t>(1, std::min<std::uint64_t>(room, room_below) / 2)),
      lost_after_(std::max(room_below, overdue_after_)),
      look_at_one_in_(
          one_in(lost_after_, std::max<std::uint64_t>(kWaitingMin, std::uint64_t{4} * room))) {
  CAIRN_CHECK(room > 0);
  CAIRN_CHECK(overdue_after_ <= lost_after_);
  CAIRN_CHECK(std::has_single_bit(look_at_one_in_));  // its hash is masked with it
}

unsigned ReturnRates::class_of(std::uint32_t uses) {
  const auto octave = static_cast<unsigned>(std::bit_width(std::max(uses, 1U))) - 1;
  return std::min(octave, kClasses - 1);
}

// Fibonacci hashing (Knuth, TAOCP 3, 6.4), so that no stride misses all of them.
bool ReturnRates::is_looked_at(std::uint64_t segment) const {
  return (segment * 0x9e3779b97f4a7c15ULL >> 40 & (look_at_one_in_ - 1)) == 0;
}

void ReturnRates::note_left(std::uint64_t segment, std::uint32_t uses) {
  ++left_;
  if (is_looked_at(segment)) {
    const auto page_class = static_cast<std::uint8_t>(class_of(uses));
    forget(segment);
    waiting_.emplace(segment, Waiting{left_, page_class, false});
    in_time_.push_back(Left{segment, left_});
  }
  look_at_the_oldest();
}

// Null when it has returned since.
ReturnRates::Waiting* ReturnRates::find(const Left& left) {
  const auto found = waiting_.find(left.segment);
  return found != waiting_.end() && found->second.number == left.number ? &found->second : nullptr;
}

std::uint64_t ReturnRates::overdue_after() const {
  const auto usual = static_cast<std::uint64_t>(1.25 * return_takes_);
  return std::min(std::max(overdue_after_, usual), lost_after_);
}

void ReturnRates::look_at_the_oldest() {
  while (!in_time_.empty() && left_ - in_time_.front().number >= overdue_after()) {
    const Left left = in_time_.front();
    in_time_.pop_front();
    Waiting* waiting = find(left);
    if (waiting == nullptr) continue;
    CAIRN_DCHECK(!waiting->is_overdue);
    waiting->is_overdue = true;
    return_takes_ -= kReturnsFade * return_takes_;
    ++counts_[waiting->page_class].overdue;
    overdue_.push_back(left);
  }
  while (!overdue_.empty() && left_ - overdue_.front().number >= lost_after_) {
    const Left left = overdue_.front();
    overdue_.pop_front();
    const Waiting* waiting = find(left);
    if (waiting == nullptr) continue;
    Counts& counts = counts_[waiting->page_class];
    CAIRN_DCHECK(waiting->is_overdue && counts.overdue >= 1);
    --counts.overdue;
    ++counts.lost;
    fade(&counts);
    waiting_.erase(left.segment);
  }
}

void ReturnRates::note_used(std::uint64_t segment) {
  const auto found = waiting_.find(segment);
  if (found == waiting_.end()) return;
  Counts& counts = counts_[found->second.page_class];
  if (found->second.is_overdue) --counts.overdue;
  ++counts.returned;
  CAIRN_DCHECK(found->second.number <= left_);
  const auto took = static_cast<double>(left_ - found->second.number);
  return_takes_ = std::max(took, return_takes_ - kReturnsFade * return_takes_);
  fade(&counts);
  waiting_.erase(found);
}

void ReturnRates::forget(std::uint64_t segment) {
  const auto found = waiting_.find(segment);
  if (found == waiting_.end()) return;
  if (found->second.is_overdue) --counts_[found->second.page_class].overdue;
  waiting_.erase(found);
}

// Overdue segments are counted anew all the time, so only the rest fades.
void ReturnRates::fade(Counts* counts) {
  if (counts->returned + counts->lost < kFadesAt) return;
  counts->returned /= 2;
  counts->lost /= 2;
}

double ReturnRates::chance(unsigned page_class) const {
  const Counts& counts = counts_[page_class];
  const double all = counts.returned + counts.lost + counts.overdue;
  if (all < kSegmentsBehind) return 1;
  return (counts.returned + 0.1) / (all + 0.5);
}

}  // namespace cairn
