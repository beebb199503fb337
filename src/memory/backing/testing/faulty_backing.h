// SPDX-License-Identifier: Apache-2.0
// Another backing that fails, or does less than it was told to, at the calls that a test names.
//
// Calls are counted by kind, the first is number 1. A plan holds for a range of them, and the last
// plan that names a call decides. Without a plan every call is the other backing's own.
//
// Thread safety: any thread, once the plans are made. Ownership: borrows the other backing.
#pragma once

#include <array>
#include <atomic>
#include <climits>
#include <vector>

#include "memory/backing/backing.h"

namespace cairn::testing {

enum class BackingCall : std::uint8_t {
  kRead,
  kWrite,
  kAppend,
  kStatus,
  kTruncate,
  kAllocate,
  kSetTime,
  kSync,
};
inline constexpr std::size_t kBackingCalls = 8;

class FaultyBacking final : public Backing {
 public:
  explicit FaultyBacking(Backing& other) : Backing(other.descriptor()), other_(other) {}

  // The call number `first` of the kind, and `times` - 1 more, end with -`error` and do nothing.
  void fail(BackingCall call, int error, unsigned first = 1, unsigned times = UINT_MAX);
  // They read or write at most so many bytes.
  void shorten(BackingCall call, std::size_t bytes_max, unsigned first = 1,
               unsigned times = UINT_MAX);
  // Forgets all plans; the counts go on.
  void heal() { plans_.clear(); }
  unsigned count(BackingCall call) const;

  bool is_writable() const override { return other_.is_writable(); }
  ssize_t read(std::uint64_t offset, void* buffer, std::size_t length) override;
  ssize_t read_once(std::uint64_t offset, void* buffer, std::size_t length) override;
  ssize_t read_parts(std::uint64_t offset, std::span<iovec> parts) override;
  ssize_t write(std::uint64_t offset, const void* buffer, std::size_t length) override;
  ssize_t write_once(std::uint64_t offset, std::span<const iovec> parts) override;
  ssize_t append(const void* buffer, std::size_t length, std::uint64_t* offset) override;
  int status(StoreStatus* status) override;
  int truncate(std::uint64_t size) override;
  int truncate_as_called(std::uint64_t size) override;
  int allocate(int mode, std::uint64_t offset, std::uint64_t length) override;
  int set_mtime(std::int64_t mtime_ns) override;
  int sync(SyncDepth depth) override;

 private:
  struct Plan {
    BackingCall call;
    unsigned first;
    unsigned times;
    int error = 0;
    std::size_t bytes_max = SIZE_MAX;
  };
  // What the next call of the kind is to do.
  struct Fate {
    int error = 0;
    std::size_t bytes_max = SIZE_MAX;
  };
  Fate next(BackingCall call);

  Backing& other_;
  std::vector<Plan> plans_;
  std::array<std::atomic<unsigned>, kBackingCalls> counts_{};
};

}  // namespace cairn::testing
