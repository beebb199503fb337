// SPDX-License-Identifier: Apache-2.0
#include "service/process/process_image.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cairn::node {
namespace {

constexpr uid_t kStranger = 12345;  // who asks must have no more rights than the process asked of

// What a process without privileges sees of `pid`.
NodeMapping as_seen_without_privileges(pid_t pid) {
  const pid_t asker = ::fork();
  if (asker == 0) {
    if (::geteuid() == 0 && ::setresuid(kStranger, kStranger, kStranger) != 0) ::_exit(100);
    ::_exit(static_cast<int>(node_mapping_of(pid)));
  }
  int status = 0;
  ::waitpid(asker, &status, 0);
  return static_cast<NodeMapping>(WEXITSTATUS(status));
}

class ProcessImage : public ::testing::Test {
 protected:
  // A process that maps the node's memory, or not, and may be looked at, or not.
  void start(bool maps, bool may_be_seen) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    child_ = ::fork();
    if (child_ == 0) {
      if (maps) {
        const int memory = ::memfd_create("cairn-control", MFD_CLOEXEC);
        (void)::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, memory, 0);
      }
      if (::geteuid() == 0 && ::setresuid(kStranger, kStranger, kStranger) != 0) ::_exit(1);
      ::prctl(PR_SET_DUMPABLE, may_be_seen ? 1 : 0);
      (void)!::write(ready[1], "r", 1);
      for (;;) ::pause();
    }
    char letter = 0;
    ASSERT_EQ(::read(ready[0], &letter, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  void TearDown() override {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  pid_t child_ = -1;
};

TEST_F(ProcessImage, OneThatMapsTheNodeIsKnown) {
  start(true, true);
  EXPECT_EQ(as_seen_without_privileges(child_), NodeMapping::kMapped);
}

TEST_F(ProcessImage, OneThatDoesNotMapItIsKnown) {
  start(false, true);
  EXPECT_EQ(as_seen_without_privileges(child_), NodeMapping::kNotMapped);
}

TEST_F(ProcessImage, OneThatMayNotBeLookedAtIsNotTakenForDead) {
  start(true, false);
  EXPECT_EQ(as_seen_without_privileges(child_), NodeMapping::kUnknown);
}

TEST_F(ProcessImage, OneThatHasEndedMapsNothing) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(node_mapping_of(child), NodeMapping::kNotMapped);
}

}  // namespace
}  // namespace cairn::node
