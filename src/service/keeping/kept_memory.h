// SPDX-License-Identifier: Apache-2.0
// What a service leaves to its successor, beside the node's shared memory: a piece of memory that
// the keeper (service/keeping/keeper.h) mapped before it forked, so that it outlives every service.
// It is a memory file, so that a keeper of another image can map it, too. No client ever sees it,
// so the successor may trust it as far as the dead service's own code.
//
// Each service takes the same pieces in the same order, which gives it the pieces of the one
// before: the first finds zeros, a successor what the dead one left. So a piece holds plain values
// alone, and its user keeps it legal at every step of a change.
//
// Thread safety: take() while the service is composed, by one thread; a piece as its user says.
// Ownership: unmaps on destruction; a forked child has the same mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace cairn::node {

class KeptMemory {
 public:
  // Memory is taken when it is touched first.
  static constexpr std::size_t kBytes = std::size_t{256} << 20;

  KeptMemory() = default;
  KeptMemory(KeptMemory&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)),
        fd_(std::exchange(other.fd_, -1)),
        taken_(other.taken_) {}
  KeptMemory& operator=(KeptMemory&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(fd_, other.fd_);
    std::swap(taken_, other.taken_);
    return *this;
  }
  ~KeptMemory();

  // Errors: kExhausted when there is no address space.
  static Result<KeptMemory> create();
  // Maps what another image has left at `fd`, which is this one's from then on.
  // Errors: kIncompatible when it is something else.
  static Result<KeptMemory> open(int fd);
  int fd() const { return fd_; }

  // The next piece: `count` values. Requires: the same calls in each service.
  template <typename Value>
  std::span<Value> take(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<Value>, "nobody ends the life of these values");
    return {reinterpret_cast<Value*>(take_bytes(sizeof(Value), count)), count};
  }

 private:
  // In front of each piece, so that a successor which takes other pieces is found out.
  struct alignas(64) Seal {
    std::size_t value_bytes;
    std::size_t count;
  };
  std::byte* take_bytes(std::size_t value_bytes, std::size_t count);

  std::byte* base_ = nullptr;
  int fd_ = -1;
  std::size_t taken_ = 0;  // of this service
};

}  // namespace cairn::node
