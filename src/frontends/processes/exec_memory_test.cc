// SPDX-License-Identifier: Apache-2.0
#include "frontends/processes/exec_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace cairn {
namespace {

constexpr std::size_t kBytes = 1 << 20;

// Where a vfork child's memory was, as it says in its parent's memory.
std::byte* volatile place = nullptr;

template <typename End>
void take_in_child(std::size_t size, End&& end) {
  const pid_t child = vfork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ExecMemory memory(size, true);
    place = memory.begin();
    if (place != nullptr) std::memset(place, 1, size);
    end();
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(WEXITSTATUS(status), 0);
}

void succeed() {
  execl("/bin/true", "true", nullptr);
  _exit(9);
}

void fail() {
  execl("/nowhere/at/all", "all", nullptr);
  _exit(0);
}

TEST(ExecMemory, OfAChildIsFreeWhenItHasLeftItsParentsMemory) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer makes a fork of vfork: the child has memory of its own";
#endif
  take_in_child(kBytes, succeed);
  std::byte* const first = place;
  ASSERT_NE(first, nullptr);
  for (int again = 0; again < 200; ++again) {
    take_in_child(kBytes, again % 2 == 0 ? fail : succeed);
    ASSERT_EQ(place, first) << "the memory of the one before is taken";
  }
  take_in_child(2 * kBytes, succeed);
  EXPECT_NE(place, nullptr);
}

TEST(ExecMemory, OfTheProcessItselfIsGivenBack) {
  for (int again = 0; again < 200; ++again) {
    const ExecMemory memory(kBytes, false);
    ASSERT_NE(memory.begin(), nullptr);
    std::memset(memory.begin(), 1, kBytes);
  }
}

}  // namespace
}  // namespace cairn
