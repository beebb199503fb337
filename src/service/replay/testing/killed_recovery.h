// SPDX-License-Identifier: Apache-2.0
// A recovery that is killed on its way.
//
// Thread safety: none; forks.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "service/replay/recovery.h"

namespace cairn::durable {

// From one step at which a recovery is killed to the next.
#ifdef CAIRN_TSAN
inline constexpr int kKillStride = 8;  // its one other thread copies, whatever the step
#else
inline constexpr int kKillStride = 1;
#endif

// Kills a recovery of the tier before its step `count`. Returns whether it had that many.
inline bool is_killed_at(const std::string& tier, int count) {
  constexpr int kKilled = 9;
  const pid_t child = ::fork();
  if (child == 0) {
    int steps = 0;
    auto report = recover(tier, {.at_step = [&](const char*) {
                            if (++steps > count) ::_exit(kKilled);
                          }});
    ::_exit(report.is_ok() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 1);
  return WEXITSTATUS(status) == kKilled;
}

}  // namespace cairn::durable
