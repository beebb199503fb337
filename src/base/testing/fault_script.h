// SPDX-License-Identifier: Apache-2.0
// What a test has planned for the calls of a test double: errors, short and torn transfers, delays,
// hangs.
//
// Calls are counted by kind, the first is number 1. A plan holds for a range of them, and the last
// plan that names a call decides. Without a plan a call is as it would be.
//
// Thread safety: all functions.
#pragma once

#include <array>
#include <climits>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace cairn::testing {

// Calls by number: from `first` on, so many.
struct Calls {
  unsigned first = 1;
  unsigned times = UINT_MAX;
};

class FaultScript {
 public:
  static constexpr std::size_t kKindsMax = 8;

  // What becomes of one call.
  struct Fate {
    int error = 0;                     // -errno that it ends with; 0: none
    std::size_t bytes_max = SIZE_MAX;  // it transfers no more, with an error as well
  };
  // They end with -`error` and do nothing.
  void fail(unsigned kind, int error, Calls calls = {}) { plan({kind, calls, {-error, 0}}); }
  // They transfer at most so many bytes.
  void shorten(unsigned kind, std::size_t bytes_max, Calls calls = {}) {
    plan({kind, calls, {0, bytes_max}});
  }
  // They transfer so many bytes, and end with -`error`.
  void tear(unsigned kind, std::size_t bytes, int error, Calls calls = {}) {
    plan({kind, calls, {-error, bytes}});
  }
  // They take so long.
  void delay(unsigned kind, int delay_ms, Calls calls = {}) {
    plan({kind, calls, {}, delay_ms, false});
  }
  // They end after heal() only.
  void hang(unsigned kind, Calls calls = {}) { plan({kind, calls, {}, 0, true}); }

  // Forgets all plans, so that those who hang go on; the counts go on, too.
  void heal();
  // Waits until so many calls hang.
  void await_hanging(unsigned count);
  unsigned count(unsigned kind) const;

  // The next call of the kind begins: waits as it is planned, and tells what becomes of it.
  Fate next(unsigned kind);

 private:
  struct Plan {
    unsigned kind;
    Calls calls;
    Fate fate;
    int delay_ms = 0;
    bool hangs = false;
  };
  void plan(const Plan& plan);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Plan> plans_;
  std::array<unsigned, kKindsMax> counts_{};
  unsigned hanging_ = 0;
  unsigned healed_ = 0;
};

}  // namespace cairn::testing
