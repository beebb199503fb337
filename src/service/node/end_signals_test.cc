// SPDX-License-Identifier: Apache-2.0
#include "service/node/end_signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <memory>

namespace cairn::node {
namespace {

constexpr pid_t kKeeper = 41;
constexpr pid_t kSomebody = 7;

class EndSignalsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    signals_ = std::make_unique<EndSignals>(UniqueFd(ends[0]), kKeeper);
    in_.reset(ends[1]);
  }
  void come_from(pid_t sender) const {
    signalfd_siginfo info{};
    info.ssi_signo = SIGTERM;
    info.ssi_pid = static_cast<std::uint32_t>(sender);
    ASSERT_EQ(::write(in_.get(), &info, sizeof info), static_cast<ssize_t>(sizeof info));
  }
  std::unique_ptr<EndSignals> signals_;
  UniqueFd in_;
};

TEST_F(EndSignalsTest, NobodyAsks) {
  EXPECT_FALSE(signals_->is_asking());
  EXPECT_FALSE(signals_->take());
}

TEST_F(EndSignalsTest, ASignalToAllProcessesOfTheNodeIsOne) {
  come_from(kSomebody);
  EXPECT_TRUE(signals_->take());
  come_from(kKeeper);
  EXPECT_FALSE(signals_->is_asking()) << "it interrupts no drain";
  EXPECT_FALSE(signals_->take());
  come_from(kKeeper);
  EXPECT_TRUE(signals_->take()) << "the second time that the user asks";
  come_from(kSomebody);
  EXPECT_FALSE(signals_->take());
}

TEST_F(EndSignalsTest, EachWayCountsByItself) {
  for (const pid_t sender : {kSomebody, kKeeper}) {
    SetUp();
    for (int times = 0; times < 2; ++times) {
      come_from(sender);
      EXPECT_TRUE(signals_->is_asking());
      EXPECT_TRUE(signals_->take());
      EXPECT_FALSE(signals_->take());
    }
  }
}

}  // namespace
}  // namespace cairn::node
