// SPDX-License-Identifier: Apache-2.0
#include "memory/catalog/description_table.h"

#include "base/check.h"

namespace cairn {
namespace {

constexpr std::uint64_t pack(HoldKind kind, Owner owner, std::uint32_t index) {
  return static_cast<std::uint64_t>(kind) << 61 | static_cast<std::uint64_t>(owner.bits()) << 32 |
         index;
}

}  // namespace

// Returns 0 when no record is free.
std::uint32_t DescriptionTable::claim_record(ObjectIndex object) {
  for (std::uint32_t tries = 0; tries < capacity_; ++tries) {
    const std::uint32_t index = next_record(board_->cursor, capacity_);
    if (index == 0) continue;
    OpenDescription& record = records_[index];
    std::uint32_t free = 0;
    if (record.object.load(std::memory_order_relaxed) == 0 &&
        record.object.compare_exchange_strong(free, raw(object), std::memory_order_acq_rel))
      return index;
  }
  return 0;
}

DescriptionIndex DescriptionTable::create(ObjectIndex object, std::uint32_t flags) {
  CAIRN_DCHECK(object != ObjectIndex::kNone);
  const std::uint32_t index = full_mark().claim([&] { return claim_record(object); });
  if (index == 0) return DescriptionIndex::kNone;
  OpenDescription& record = records_[index];
  record.offset.store(0, std::memory_order_relaxed);
  record.flags.store(flags, std::memory_order_relaxed);
  record.references.store(0, std::memory_order_relaxed);
  record.error_seen.store(0, std::memory_order_relaxed);
  return static_cast<DescriptionIndex>(index);
}

void DescriptionTable::destroy(DescriptionIndex index) {
  OpenDescription& record = at(index);
  CAIRN_DCHECK(record.references.load() == 0);
  record.generation.fetch_add(1, std::memory_order_acq_rel);
  record.object.exchange(0, std::memory_order_seq_cst);
  full_mark().note_freed();
}

HoldIndex DescriptionTable::claim_hold(std::uint64_t word) {
  const auto walk = [&]() -> std::uint32_t {
    for (std::uint32_t tries = 0; tries < hold_capacity_; ++tries) {
      const std::uint32_t index = next_record(board_->hold_cursor, hold_capacity_);
      if (index == 0) continue;
      std::uint64_t free = 0;
      if (holds_[index].word.load(std::memory_order_relaxed) == 0 &&
          holds_[index].word.compare_exchange_strong(free, word, std::memory_order_acq_rel))
        return index;
    }
    return 0;
  };
  return static_cast<HoldIndex>(holds_full_mark().claim(walk));
}

HoldIndex DescriptionTable::hold(DescriptionIndex index, Owner owner, HoldKind kind) {
  // Counted first: a death in between leaks a description record, never frees one in use.
  at(index).references.fetch_add(1, std::memory_order_acq_rel);
  const HoldIndex made = claim_hold(pack(kind, owner, raw(index)));
  if (made == HoldIndex::kNone) at(index).references.fetch_sub(1, std::memory_order_acq_rel);
  return made;
}

HoldIndex DescriptionTable::hold_through(ObjectIndex object, Owner owner) {
  return claim_hold(pack(HoldKind::kThrough, owner, raw(object)));
}

bool DescriptionTable::transfer(HoldIndex hold, Owner from, Owner to, DescriptionIndex expected) {
  if (raw(hold) == 0 || raw(hold) >= hold_capacity_) return false;
  std::uint64_t seen = holds_[raw(hold)].word.load(std::memory_order_acquire);
  const bool ours = seen == pack(HoldKind::kDescriptionInTransit, from, raw(expected)) ||
                    seen == pack(HoldKind::kDescription, from, raw(expected));
  return ours && holds_[raw(hold)].word.compare_exchange_strong(
                     seen, pack(HoldKind::kDescription, to, raw(expected)));
}

DescriptionTable::HoldView DescriptionTable::view(HoldIndex hold) const {
  const std::uint64_t word = holds_[raw(hold)].word.load(std::memory_order_acquire);
  return HoldView{static_cast<HoldKind>(word >> 61),
                  Owner::from_bits(static_cast<std::uint32_t>(word >> 32)),
                  static_cast<std::uint32_t>(word)};
}

bool DescriptionTable::free_unsound(HoldIndex hold, std::uint32_t slot_count,
                                    std::uint32_t objects) const {
  std::uint64_t seen = holds_[raw(hold)].word.load(std::memory_order_acquire);
  const HoldView held = view(hold);
  const std::uint32_t index = static_cast<std::uint32_t>(seen);
  const auto kind = static_cast<HoldKind>(seen >> 61);
  const std::uint32_t end = kind == HoldKind::kThrough ? objects : capacity_;
  const bool is_sound = kind <= HoldKind::kThrough && held.owner.slot() != 0 &&
                        held.owner.slot() < slot_count && index != 0 && index < end;
  if (seen == 0 || is_sound || !holds_[raw(hold)].word.compare_exchange_strong(seen, 0))
    return false;
  holds_full_mark().note_freed();
  return true;
}

DescriptionTable::Released DescriptionTable::release(HoldIndex hold, Owner owner) {
  Released released;
  if (raw(hold) == 0 || raw(hold) >= hold_capacity_) return released;
  std::uint64_t seen = holds_[raw(hold)].word.load(std::memory_order_acquire);
  const HoldView held = view(hold);
  if (seen == 0 || held.owner != owner) return released;
  if (!holds_[raw(hold)].word.compare_exchange_strong(seen, 0)) return released;
  holds_full_mark().note_freed();
  released.kind = static_cast<HoldKind>(seen >> 61);
  released.index = static_cast<std::uint32_t>(seen);
  if (released.kind != HoldKind::kThrough) {
    OpenDescription& record = at(static_cast<DescriptionIndex>(released.index));
    released.last = record.references.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  return released;
}

}  // namespace cairn
