// SPDX-License-Identifier: Apache-2.0
// A thread of root with the rights of a user, where tests need somebody who may not do everything.
//
// Thread safety: of the thread that makes it. Source: capget(2), capabilities(7).
#pragma once

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace cairn::testing {

// As long as it lives, this thread may not open a file by its handle.
class NobodyMayAskForHandles {
 public:
  NobodyMayAskForHandles() {
    EXPECT_EQ(::syscall(SYS_capget, &header_, all_.data()), 0);
    auto fewer = all_;
    for (const int right : {CAP_DAC_READ_SEARCH, CAP_SYS_ADMIN})
      fewer[CAP_TO_INDEX(right)].effective &= ~CAP_TO_MASK(right);
    EXPECT_EQ(::syscall(SYS_capset, &header_, fewer.data()), 0);
  }
  ~NobodyMayAskForHandles() { EXPECT_EQ(::syscall(SYS_capset, &header_, all_.data()), 0); }
  NobodyMayAskForHandles(const NobodyMayAskForHandles&) = delete;
  NobodyMayAskForHandles& operator=(const NobodyMayAskForHandles&) = delete;

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> all_{};
};

}  // namespace cairn::testing
