// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/known_future.h"

#include <algorithm>

#include "base/check.h"

namespace cairn {
namespace {

constexpr std::size_t kSlotsMin = 64;

}  // namespace

// Fibonacci hashing (Knuth, TAOCP 3, 6.4), for a table of any size.
std::size_t KnownFuture::home_of(std::uint32_t block) const {
  const std::uint32_t mixed = block * 0x9e3779b9U;
  return static_cast<std::size_t>(std::uint64_t{mixed} * slots_.size() >> 32);
}

std::size_t KnownFuture::find(std::uint32_t block) const {
  std::size_t slot = home_of(block);
  while (slots_[slot].first != kNever && slots_[slot].block != block) slot = next(slot);
  return slot;
}

void KnownFuture::grow() {
  std::vector<Slot> before = std::move(slots_);
  slots_.assign(std::max(kSlotsMin, before.size() + before.size() / 2), Slot{});
  for (const Slot& slot : before) {
    if (slot.first != kNever) slots_[find(slot.block)] = slot;
  }
}

void KnownFuture::expect(std::uint32_t block) {
  CAIRN_DCHECK(!is_full());
  // At most three quarters full, so that few slots are passed in a search.
  if ((blocks_ + 1) * 4 > slots_.size() * 3) grow();
  const std::uint32_t number = end();
  Slot& slot = slots_[find(block)];
  if (slot.first == kNever) {
    slot = Slot{block, number, number};
    ++blocks_;
  } else {
    uses_[slot.last - now_].again = number;
    slot.last = number;
  }
  uses_.push_back(Use{block, kNever});
}

std::uint32_t KnownFuture::until_use(std::uint32_t block) const {
  if (slots_.empty()) return kNever;
  const Slot& slot = slots_[find(block)];
  return slot.first == kNever ? kNever : slot.first - now_;
}

void KnownFuture::take_out(std::size_t slot) {
  --blocks_;
  std::size_t hole = slot;
  for (std::size_t at = next(hole); slots_[at].first != kNever; at = next(at)) {
    // A block at home behind the hole, up to here, is found without it.
    const std::size_t home = home_of(slots_[at].block);
    const bool is_behind = hole < at ? home > hole && home <= at : home > hole || home <= at;
    if (is_behind) continue;
    slots_[hole] = slots_[at];
    hole = at;
  }
  slots_[hole] = Slot{};
}

void KnownFuture::pass(std::uint32_t uses) {
  for (; uses > 0 && !uses_.empty(); --uses) {
    const Use past = uses_.front();
    uses_.pop_front();
    ++now_;
    const std::size_t slot = find(past.block);
    CAIRN_DCHECK(slots_[slot].first == now_ - 1);
    if (past.again == kNever) {
      take_out(slot);
    } else {
      slots_[slot].first = past.again;
    }
  }
}

}  // namespace cairn
