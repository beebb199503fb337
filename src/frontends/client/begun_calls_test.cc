// SPDX-License-Identifier: Apache-2.0
#include "frontends/client/begun_calls.h"

#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>

#include <vector>

namespace cairn {
namespace {

class BegunCallsTest : public ::testing::Test {
 protected:
  // Handlers may not allocate.
  BegunCallsTest() {
    given_back_.reserve(200);
    ended_.reserve(200);
  }
  // As a call does that takes something; `within` runs in its middle.
  [[gnu::noinline]] void call(int taken, void (*within)()) {
    const void* frame = __builtin_frame_address(0);
    calls_.end_left(frame, [this](int left) { given_back_.push_back(left); });
    const bool is_followed = calls_.begin(frame, taken);
    within();
    if (is_followed && calls_.end(frame)) ended_.push_back(taken);
  }
  [[gnu::noinline]] void jump_out_of_a_call(int taken) {
    if (sigsetjmp(place_, 1) == 0) call(taken, jump);
  }
  static void nothing() {}
  static void jump() { siglongjmp(place_, 1); }
  static void interrupt() { ::raise(SIGUSR1); }
  static void handle(int) { self_->call(2, nothing); }

  static inline sigjmp_buf place_;
  static inline BegunCallsTest* self_ = nullptr;
  BegunCalls<int> calls_;
  std::vector<int> given_back_;
  std::vector<int> ended_;
};

TEST_F(BegunCallsTest, ACallThatEndsLeavesNothing) {
  call(1, nothing);
  call(2, nothing);
  EXPECT_TRUE(given_back_.empty());
  EXPECT_EQ(ended_, (std::vector<int>{1, 2}));
}

TEST_F(BegunCallsTest, TheNextCallGivesBackWhatAJumpHasLeft) {
  for (int round = 0; round < 100; ++round) jump_out_of_a_call(round);
  call(100, nothing);
  EXPECT_EQ(given_back_.size(), 100U);
  EXPECT_EQ(ended_, std::vector<int>{100});
}

TEST_F(BegunCallsTest, ACallThatAHandlerHasInterruptedGoesOn) {
  self_ = this;
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = handle;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  call(1, interrupt);
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_TRUE(given_back_.empty());
  EXPECT_EQ(ended_, (std::vector<int>{2, 1}));
}

}  // namespace
}  // namespace cairn
