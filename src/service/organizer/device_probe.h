// SPDX-License-Identifier: Apache-2.0
// A question to the device of a tier that does not answer, and that nobody waits for: whether it
// answers by now.
//
// Thread safety: none. Ownership: borrows the tier. A question under way is left to the kernel,
// with the memory that it reads into.
#pragma once

#include <memory>

#include "memory/tiers/tier.h"

namespace cairn {

class DeviceProbe {
 public:
  explicit DeviceProbe(const Tier& tier);
  ~DeviceProbe();
  DeviceProbe(const DeviceProbe&) = delete;
  DeviceProbe& operator=(const DeviceProbe&) = delete;

  // Whether the device has answered, be it with an error. Asks if no question is under way. True
  // where the kernel or a container's filter has no io_uring: hangs are not noticed there, and what
  // an earlier service has noticed would stand for ever.
  bool has_answered();

 private:
  struct Question;

  const Tier& tier_;
  std::unique_ptr<Question> question_;  // under way
};

}  // namespace cairn
