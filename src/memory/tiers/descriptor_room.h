// SPDX-License-Identifier: Apache-2.0
// How many descriptors more the service can take. A client that is about to send one reserves the
// room for it here, so that what is in the service's queue can be received: the kernel throws a
// descriptor away for which the receiver has no number left, and says so to the receiver alone.
//
//   left       reserved by                          until
//   counted    nobody
//   sending    a client: its message is on its way  the service receives it (or the client's death)
//   held       the service: a descriptor is open    it is closed
//
// Thread safety: any thread of any process. Death safety: a client takes the room first and counts
// it for its slot afterwards, and gives it back the other way round; a death in between leaves too
// little room, until the service counts anew (service/write_back/descriptor_budget.h). Too much is
// never there, unless a client ruins the word; then the service reports what it cannot receive.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.h"

namespace cairn {

struct alignas(64) DescriptorRoom {
  std::atomic<std::int32_t> left;

  // False when fewer than `leave` would be left.
  bool take(std::int32_t count, std::int32_t leave = 0) {
    CAIRN_DCHECK(count > 0 && leave >= 0);
    if (left.load(std::memory_order_relaxed) < count + leave) return false;
    if (left.fetch_sub(count, std::memory_order_acq_rel) >= count + leave) return true;
    give_back(count);
    return false;
  }
  void give_back(std::int32_t count) { left.fetch_add(count, std::memory_order_acq_rel); }
};

// Room for one descriptor that a client sends: given back at the end unless it was sent. `sending`
// is the client's own count, in its slot.
class DescriptorReservation {
 public:
  DescriptorReservation(DescriptorRoom& room, std::atomic<std::uint32_t>& sending)
      : room_(room), sending_(sending), has_room_(room.take(1)) {
    if (has_room_) sending_.fetch_add(1, std::memory_order_acq_rel);
  }
  ~DescriptorReservation() {
    if (!has_room_) return;
    sending_.fetch_sub(1, std::memory_order_acq_rel);
    room_.give_back(1);
  }
  DescriptorReservation(const DescriptorReservation&) = delete;
  DescriptorReservation& operator=(const DescriptorReservation&) = delete;

  explicit operator bool() const { return has_room_; }
  // The message is in the service's queue: the rest is up to the service.
  void sent() { has_room_ = false; }

 private:
  DescriptorRoom& room_;
  std::atomic<std::uint32_t>& sending_;
  bool has_room_;
};

}  // namespace cairn
