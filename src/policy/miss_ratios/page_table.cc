// SPDX-License-Identifier: Apache-2.0
#include "policy/miss_ratios/page_table.h"

#include <bit>
#include <utility>

#include "base/check.h"

namespace cairn {
namespace {

constexpr std::size_t kPageSlotsMin = 64;
static_assert(std::has_single_bit(kPageSlotsMin));
static_assert(sizeof(PageTable::Page) == 16);

}  // namespace

PageTable::PageTable()
    : slots_(kPageSlotsMin),
      shift_(64 - static_cast<unsigned>(std::bit_width(kPageSlotsMin - 1))) {}

std::size_t PageTable::slot_for(std::uint64_t key) const {
  std::size_t slot = home_of(key);
  while (slots_[slot].uses != 0 && slots_[slot].key != key) slot = next(slot);
  return slot;
}

void PageTable::grow() {
  const std::vector<Page> before =
      std::exchange(slots_, std::vector<Page>(slots_.size() * 2, Page{}));
  --shift_;
  CAIRN_DCHECK(slots_.size() == std::size_t{1} << (64 - shift_));
  for (const Page& page : before) {
    if (page.uses != 0) slots_[slot_for(page.key)] = page;
  }
}

PageTable::Page& PageTable::use(std::uint64_t key) {
  if ((pages_ + 1) * 4 > slots_.size() * 3) grow();
  Page& page = slots_[slot_for(key)];
  if (page.uses == 0) {
    page = Page{key, 0, 0};
    ++pages_;
  }
  CAIRN_DCHECK(pages_ < slots_.size());
  CAIRN_DCHECK(page.key == key);
  if (page.uses != UINT32_MAX) ++page.uses;
  return page;
}

const PageTable::Page* PageTable::find(std::uint64_t key) const {
  const Page& page = slots_[slot_for(key)];
  return page.uses == 0 ? nullptr : &page;
}

PageTable::Page PageTable::erase(std::uint64_t key) {
  std::size_t hole = slot_for(key);
  const Page erased = slots_[hole];
  if (erased.uses == 0) return erased;
  CAIRN_DCHECK(pages_ > 0);
  --pages_;
  for (std::size_t at = next(hole); slots_[at].uses != 0; at = next(at)) {
    // A page whose home is behind the hole, up to here, is found without it.
    const std::size_t home = home_of(slots_[at].key);
    const bool is_behind = hole < at ? home > hole && home <= at : home > hole || home <= at;
    if (is_behind) continue;
    slots_[hole] = slots_[at];
    hole = at;
  }
  slots_[hole] = Page{};
  return erased;
}

std::vector<std::uint32_t> PageTable::all_uses() const {
  std::vector<std::uint32_t> uses;
  uses.reserve(pages_);
  for (const Page& page : slots_) {
    if (page.uses != 0) uses.push_back(page.uses);
  }
  CAIRN_DCHECK(uses.size() == pages_);
  return uses;
}

}  // namespace cairn
