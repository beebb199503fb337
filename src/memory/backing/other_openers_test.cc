// SPDX-License-Identifier: Apache-2.0
#include "memory/backing/other_openers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace cairn {
namespace {

class OtherOpenersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "cairn-openers-XXXXXX";
    const int made = ::mkstemp(pattern.data());
    ASSERT_GE(made, 0);
    ASSERT_EQ(::ftruncate(made, 100), 0);
    ::close(made);
    path_ = pattern;
  }
  void TearDown() override { ::unlink(path_.c_str()); }
  int open(int flags) const { return ::open(path_.c_str(), flags | O_CLOEXEC); }

  std::string path_;
};

TEST_F(OtherOpenersTest, WhoHasTheFileAloneFindsNobody) {
  for (const int access : {O_RDONLY, O_WRONLY, O_RDWR, O_WRONLY | O_APPEND}) {
    const int fd = open(access);
    const int shared = ::dup(fd);
    const int name_only = open(O_PATH);
    EXPECT_FALSE(may_have_other_openers(fd)) << access;
    EXPECT_FALSE(may_have_other_openers(fd)) << "the lease was not given back";
    EXPECT_EQ(::fcntl(fd, F_GETOWN), 0);
    EXPECT_EQ(::fcntl(fd, F_GETSIG), 0);
    for (const int each : {fd, shared, name_only}) ::close(each);
  }
}

TEST_F(OtherOpenersTest, AReaderAWriterAndAMappingAreFound) {
  const int fd = open(O_RDWR);
  for (const int access : {O_RDONLY, O_WRONLY, O_RDWR}) {
    const int other = open(access);
    EXPECT_TRUE(may_have_other_openers(fd)) << access;
    ::close(other);
    EXPECT_FALSE(may_have_other_openers(fd));
  }
  const int mapped = open(O_RDONLY);
  void* memory = ::mmap(nullptr, 100, PROT_READ, MAP_SHARED, mapped, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ::close(mapped);
  EXPECT_TRUE(may_have_other_openers(fd));
  ::munmap(memory, 100);
  EXPECT_FALSE(may_have_other_openers(fd));
  ::close(fd);
}

TEST_F(OtherOpenersTest, ALeaseOfTheProgramStays) {
  const int fd = open(O_RDONLY);
  ASSERT_EQ(::fcntl(fd, F_SETLEASE, F_RDLCK), 0);
  EXPECT_TRUE(may_have_other_openers(fd));
  EXPECT_EQ(::fcntl(fd, F_GETLEASE), F_RDLCK);
  ::close(fd);
}

// The default action of the kernel's signal would end the process.
TEST_F(OtherOpenersTest, OpensBesideItSendNoSignal) {
  constexpr int kRounds = 20'000;
  const pid_t opener = ::fork();
  if (opener == 0) {
    for (;;) {
      const int other = open(O_RDWR);
      if (other < 0) ::_exit(1);
      ::close(other);
    }
  }
  sigset_t before;
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  const int fd = open(O_RDWR);
  for (int round = 0; round < kRounds; ++round) (void)may_have_other_openers(fd);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  sigset_t waiting;
  ::sigpending(&waiting);
  for (int signal = 1; signal < NSIG; ++signal) {
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
    EXPECT_NE(sigismember(&waiting, signal), 1) << signal;
  }
  EXPECT_EQ(::waitpid(opener, nullptr, WNOHANG), 0) << "an open failed";
  ::kill(opener, SIGKILL);
  ::waitpid(opener, nullptr, 0);
  ::close(fd);
}

TEST_F(OtherOpenersTest, ASignalOfTheProgramThatWaitsStaysWaiting) {
  sigset_t last;
  sigemptyset(&last);
  sigaddset(&last, SIGRTMAX);
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &last, &before);
  ::raise(SIGRTMAX);
  const int fd = open(O_RDWR);
  EXPECT_FALSE(may_have_other_openers(fd));
  siginfo_t taken;
  const timespec now{0, 0};
  EXPECT_EQ(::sigtimedwait(&last, &taken, &now), SIGRTMAX);
  EXPECT_EQ(taken.si_pid, ::getpid());
  EXPECT_EQ(::sigtimedwait(&last, &taken, &now), -1);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(fd);
}

}  // namespace
}  // namespace cairn
