// SPDX-License-Identifier: Apache-2.0
// The failed operations of the tiers' devices, as all processes of the node have met them, and the
// tiers that are out of service because of them.
//
//   words             written by                              read by
//   tiers[]           clients and service, at each failure    service (capacity/tier_watch.h)
//   bell              they ring, the watch sleeps on it       both
//   out_of_service    service, for the life of the node       all that place or move a block
//
// A tier fails when kFailuresMax operations have failed within kWithinMs, or when one says that the
// device is gone. Reads of one block count as one: one call meets a bad sector several times, and a
// program may go on asking for it.
//
// Thread safety: atomics; two failures at one instant may count as one. Ownership: lives in the
// control segment. All zeros is a valid board.
#pragma once

#include <errno.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/clock.h"
#include "base/ids.h"
#include "memory/arena/bell.h"

namespace cairn {

struct alignas(64) FailureBoard {
  static constexpr unsigned kFailuresMax = 3;
  static constexpr std::uint32_t kWithinMs = 10'000;

  struct alignas(64) OfTier {
    std::atomic<std::uint64_t> count;  // operations that have failed
    // Times that bytes were not what their checksums say, and were not used.
    std::atomic<std::uint64_t> broken;
    std::atomic<std::uint32_t> error;  // errno of the last of them
    std::atomic<std::uint32_t> gone;   // errno that said that the device is gone, or 0
    // Not 0: the service has waited for the device in vain, and nobody asks it until the service
    // finds that it answers. A device that times out by itself has answered.
    std::atomic<std::uint32_t> hangs;
    // The last failures: | operation : 32 | coarse ms : 32 |. A read is named by its block, from 1,
    // and each write has a number of its own.
    std::atomic<std::uint64_t> last[kFailuresMax];

    // Whether the tier has failed often enough, or for good.
    bool is_failing(std::uint32_t now_ms) const {
      if (gone.load(std::memory_order_relaxed) != 0 || hangs.load(std::memory_order_relaxed) != 0)
        return true;
      for (const std::atomic<std::uint64_t>& failure : last) {
        const std::uint64_t seen = failure.load(std::memory_order_relaxed);
        if (seen == 0 || elapsed_ms(now_ms, static_cast<std::uint32_t>(seen)) > kWithinMs)
          return false;
      }
      return true;
    }
    void note(std::uint32_t operation, int error_number, std::uint32_t now_ms);
  };

  // A bit for each tier; never that of RAM. Its blocks are moved off, and no new ones come.
  std::atomic<std::uint32_t> out_of_service;
  Bell bell;
  OfTier tiers[kTiersMax];

  bool is_out(TierId tier) const {
    return (out_of_service.load(std::memory_order_relaxed) >> raw(tier) & 1) != 0;
  }
  bool hangs(TierId tier) const {
    return tiers[raw(tier)].hangs.load(std::memory_order_relaxed) != 0;
  }
  // `error`: -errno. A read of bytes from `offset` on has failed.
  void note_read(TierId tier, std::uint64_t offset, int error, std::uint32_t now_ms) {
    if (error == -EBADMSG) note_broken(tier, 1);
    note(tier, static_cast<std::uint32_t>(offset / kBlockBytes + 1), error, now_ms);
  }
  // Pages were not what their checksums say. Also for RAM.
  void note_broken(TierId tier, std::uint64_t pages) {
    CAIRN_DCHECK(raw(tier) < kTiersMax);
    tiers[raw(tier)].broken.fetch_add(pages, std::memory_order_relaxed);
  }
  void note_write(TierId tier, int error, std::uint32_t now_ms) {
    const std::uint64_t count = tiers[raw(tier)].count.load(std::memory_order_relaxed);
    note(tier, kWrite | static_cast<std::uint32_t>(count), error, now_ms);
  }

  // A write has not ended within the service's patience.
  void note_hang(TierId tier, std::uint32_t now_ms) {
    CAIRN_DCHECK(raw(tier) < kTiersMax);
    tiers[raw(tier)].hangs.store(1);  // before anybody hears of the failure and asks the device
    note_write(tier, -ETIMEDOUT, now_ms);
  }

  // Whether the error of an operation is the device's. The others are those of the calling process:
  // its memory, its descriptors, its limits.
  static bool is_of_device(int error) {
    switch (-error) {
      case EFAULT:
      case ENOMEM:
      case EINTR:
      case EAGAIN:
      case EBADF:
      case EFBIG:
      // A sandbox that the process has put itself into.
      case EPERM:
      case EACCES:
      case ENOSYS:
        return false;
      default:
        return error < 0;
    }
  }
  // No second try mends it. ENOTCONN and ESTALE: of file systems that are programs or servers.
  // ETIMEDOUT: the kernel has given up, or the service has (service/organizer/uring_writer.h).
  static bool is_gone(int error_number) {
    return error_number == ENODEV || error_number == ENXIO || error_number == ENOTCONN ||
           error_number == ESTALE || error_number == ESHUTDOWN || error_number == ETIMEDOUT;
  }

 private:
  static constexpr std::uint32_t kWrite = std::uint32_t{1} << 31;
  void note(TierId tier, std::uint32_t operation, int error, std::uint32_t now_ms) {
    CAIRN_DCHECK(error < 0 && raw(tier) < kTiersMax);
    tiers[raw(tier)].note(operation, -error, now_ms);
    bell.ring();
  }
};
static_assert(offsetof(FailureBoard, tiers) == 64, "a placement reads a line of its own");
static_assert(sizeof(FailureBoard) == 64 * (1 + kTiersMax));

inline void FailureBoard::OfTier::note(std::uint32_t operation, int error_number,
                                       std::uint32_t now_ms) {
  count.fetch_add(1, std::memory_order_relaxed);
  error.store(static_cast<std::uint32_t>(error_number), std::memory_order_relaxed);
  if (is_gone(error_number))
    gone.store(static_cast<std::uint32_t>(error_number), std::memory_order_relaxed);
  // The place of the same, else that of the failure the longest ago.
  std::atomic<std::uint64_t>* place = nullptr;
  std::uint32_t longest_ms = 0;
  for (std::atomic<std::uint64_t>& known : last) {
    const std::uint64_t seen = known.load(std::memory_order_relaxed);
    const bool is_own = seen >> 32 == operation;
    const std::uint32_t since_ms =
        seen == 0 ? UINT32_MAX : elapsed_ms(now_ms, static_cast<std::uint32_t>(seen));
    if (place != nullptr && !is_own && since_ms <= longest_ms) continue;
    place = &known;
    longest_ms = since_ms;
    if (is_own) break;
  }
  place->store(std::uint64_t{operation} << 32 | now_ms, std::memory_order_relaxed);
}

}  // namespace cairn
