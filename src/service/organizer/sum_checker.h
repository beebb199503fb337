// SPDX-License-Identifier: Apache-2.0
// Looks at the checksums of what came from a file tier while its device reads on: a device of 3
// GB/s would otherwise wait for a tenth of its time.
//
// Thread safety: one thread at a time calls. The checks are done, in the order in which they came,
// by a thread of its own, which gives way to others (the kernel's, which fetch for the device), and
// by the caller while it waits. Ownership: checks, and the bytes that they name, are the caller's,
// and stay where they are until wait().
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>
#include <thread>

#include "memory/tiers/tier.h"

namespace cairn {

struct SumCheck {
  TierPlace place;
  std::span<const iovec> parts;  // what was fetched from there
  int result = 0;                // 0 or -EBADMSG once it is done
  bool is_done = false;
};

class SumChecker {
 public:
  SumChecker() = default;
  ~SumChecker();
  SumChecker(const SumChecker&) = delete;
  SumChecker& operator=(const SumChecker&) = delete;

  // The check begins soon.
  void add(SumCheck& check);
  // Returns when these are done, all of which were added.
  void wait(std::span<const SumCheck> checks);

 private:
  void work();
  bool do_next(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<SumCheck*> checks_;  // that nobody has begun
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace cairn
