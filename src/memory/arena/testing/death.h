// SPDX-License-Identifier: Apache-2.0
// A pause (memory/arena/step_pause.h) that kills its process with SIGKILL at one step.
//
// Thread safety: one thread.
#pragma once

#include <signal.h>
#include <unistd.h>

namespace cairn::testing {

class Death {
 public:
  explicit Death(unsigned step) : left_(step) {}
  void at_step() const {
    if (left_-- == 0) ::kill(::getpid(), SIGKILL);
  }

 private:
  mutable unsigned left_;
};

}  // namespace cairn::testing
