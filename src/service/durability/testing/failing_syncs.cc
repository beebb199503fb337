// SPDX-License-Identifier: Apache-2.0
#include "service/durability/testing/failing_syncs.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <thread>

#include "base/check.h"

namespace cairn::node::testing {
namespace {

void refuse_fsync() {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsync, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program{sizeof code / sizeof code[0], code};
  CAIRN_CHECK(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CAIRN_CHECK(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
}

void give_up_rights() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
  CAIRN_CHECK(::syscall(SYS_capget, &header, data) == 0);
  data[0].effective &= ~(1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH);
  CAIRN_CHECK(::syscall(SYS_capset, &header, data) == 0);
}

}  // namespace

std::atomic<int> syncfs_error{0};

SyncfsFails::SyncfsFails() { syncfs_error.store(EIO); }

void while_fsync_fails(const std::function<void()>& work, bool as_stranger) {
  std::thread([&] {
    refuse_fsync();
    if (as_stranger) give_up_rights();
    work();
  }).join();
}

}  // namespace cairn::node::testing

// In the place of libc's.
extern "C" int syncfs(int fd) noexcept {
  const int error = cairn::node::testing::syncfs_error.load();
  if (error == 0) return static_cast<int>(::syscall(SYS_syncfs, fd));
  errno = error;
  return -1;
}
