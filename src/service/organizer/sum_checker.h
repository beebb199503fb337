// SPDX-License-Identifier: Apache-2.0
// Looks at the checksums of what came from a file tier while its device reads on: a device of 3
// GB/s would otherwise wait for a tenth of its time.
//
// Thread safety: one thread at a time calls; the checks are done by a thread of its own, which
// begins with the first of them. Ownership: checks, and the bytes that they name, are the caller's,
// and stay where they are until wait().
#pragma once

#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>

#include "memory/tiers/tier.h"

namespace cairn {

struct SumCheck {
  TierPlace place;
  std::span<const iovec> parts;  // what was fetched from there
  int result = 0;                // 0 or -EBADMSG after wait()
};

class SumChecker {
 public:
  SumChecker() = default;
  ~SumChecker();
  SumChecker(const SumChecker&) = delete;
  SumChecker& operator=(const SumChecker&) = delete;

  // Begins with the checks, of which there are some. Requires: none are under way.
  void start(std::span<SumCheck> checks);
  // Returns when they are done; at once where there are none.
  void wait();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::span<SumCheck> checks_;  // under way
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace cairn
