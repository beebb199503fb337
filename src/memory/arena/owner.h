// SPDX-License-Identifier: Apache-2.0
// Who holds a lock, a lease or a reference in the arena: a client slot and its generation.
//
// Rule 4 of the design: a client can be killed by SIGKILL at any instruction, so everything that
// can be held names its holder. The node service declares a client dead by advancing the generation
// of its slot; from that instant everybody may take over what the old generation held.
//
// A service that dies is followed by another one in the same slot (succeed()), or by none: then its
// waiters find out by themselves (OwnerWatch). The generation of that slot tells which it is:
//
//   generation  meaning                                       moved by
//   even        the name of a service, alive or about to be   waiter that finds it gone -> odd;
//               followed                                      successor -> the next even one
//   odd         the service is dead, and none has followed    successor -> the next even one
//
// A name comes again after 128 services. Each successor releases all that bears a dead name, so
// none is left by then.
//
// Thread safety: Owner is a value; OwnerTable is lock-free.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/check.h"

namespace cairn {

// Drawn:  | generation : 8 | slot : 16 |   in the low 24 bits
// 0 means nobody: slot 0 is never given out.
class Owner {
 public:
  static constexpr unsigned kBits = 24;
  static constexpr std::uint32_t kMask = (std::uint32_t{1} << kBits) - 1;

  constexpr Owner() = default;
  constexpr Owner(std::uint16_t slot, std::uint8_t generation)
      : bits_(static_cast<std::uint32_t>(generation) << 16 | slot) {}
  static constexpr Owner from_bits(std::uint32_t bits) {
    Owner owner;
    owner.bits_ = bits & kMask;
    return owner;
  }

  constexpr std::uint16_t slot() const { return static_cast<std::uint16_t>(bits_); }
  constexpr std::uint8_t generation() const { return static_cast<std::uint8_t>(bits_ >> 16); }
  constexpr std::uint32_t bits() const { return bits_; }
  constexpr explicit operator bool() const { return bits_ != 0; }
  friend constexpr bool operator==(Owner, Owner) = default;

 private:
  std::uint32_t bits_ = 0;
};

static_assert(Owner(UINT16_MAX, UINT8_MAX).bits() == Owner::kMask);
static_assert(Owner::from_bits(Owner(7, 3).bits()) == Owner(7, 3));
static_assert(!Owner(), "0 is nobody");

// Tells of an owner whether it is gone although nobody has declared it dead.
class OwnerWatch {
 public:
  // Asked by one who has waited for what `owner` holds; may take a few system calls. True only if
  // nothing of the owner can touch the arena any more.
  virtual bool is_gone(Owner owner) const = 0;

 protected:
  ~OwnerWatch() = default;
};

// The generation of every slot, in shared memory.
class OwnerTable {
 public:
  OwnerTable() = default;
  OwnerTable(std::atomic<std::uint32_t>* generations, std::uint32_t count)
      : generations_(generations), count_(count) {}

  bool is_alive(Owner owner) const {
    if (owner.slot() == 0 || owner.slot() >= count_) return false;
    const std::uint32_t now = generations_[owner.slot()].load(std::memory_order_acquire);
    return static_cast<std::uint8_t>(now) == owner.generation();
  }
  // Only the node service: from here on the present generation of `slot` counts as dead.
  void advance(std::uint16_t slot) {
    CAIRN_DCHECK(slot != 0 && slot < count_);
    generations_[slot].fetch_add(1, std::memory_order_acq_rel);
  }
  Owner current(std::uint16_t slot) const {
    CAIRN_DCHECK(slot < count_);
    return Owner(slot,
                 static_cast<std::uint8_t>(generations_[slot].load(std::memory_order_acquire)));
  }
  std::uint32_t count() const { return count_; }

  // False when the last owner of such a slot is dead and none has followed it.
  bool has_owner(std::uint16_t slot) const { return names_an_owner(current(slot)); }
  // The successor's name in such a slot: from here on everybody may take over what its predecessors
  // hold. Requires: nothing of them can touch the arena any more.
  Owner succeed(std::uint16_t slot) {
    CAIRN_DCHECK(slot != 0 && slot < count_);
    std::atomic<std::uint32_t>& generation = generations_[slot];
    std::uint32_t seen = generation.load(std::memory_order_acquire);
    // A waiter may find out at this moment that the one before is gone.
    while (!generation.compare_exchange_weak(seen, (seen | 1) + 1, std::memory_order_acq_rel)) {
    }
    return Owner(slot, static_cast<std::uint8_t>((seen | 1) + 1));
  }

  // `watch` is this process's own and must outlive the table.
  // Returns the watch before.
  const OwnerWatch* watch_with(const OwnerWatch* watch) { return std::exchange(watch_, watch); }
  // For who has waited in vain for what `owner` holds: if it is gone, it counts as dead from here
  // on, for everybody.
  void look_after(Owner owner) const {
    if (watch_ == nullptr || !is_alive(owner) || !watch_->is_gone(owner)) return;
    std::atomic<std::uint32_t>& generation = generations_[owner.slot()];
    std::uint32_t seen = generation.load(std::memory_order_acquire);
    // Once only, whoever else has looked.
    if (static_cast<std::uint8_t>(seen) == owner.generation())
      generation.compare_exchange_strong(seen, seen + 1, std::memory_order_acq_rel);
  }
  // The same for the last owner of a slot in which one follows another.
  void look_after_last(std::uint16_t slot) const {
    const Owner last = current(slot);
    if (names_an_owner(last)) look_after(last);
  }

 private:
  static constexpr bool names_an_owner(Owner owner) { return (owner.generation() & 1) == 0; }

  std::atomic<std::uint32_t>* generations_ = nullptr;
  const OwnerWatch* watch_ = nullptr;
  std::uint32_t count_ = 0;
};

}  // namespace cairn
