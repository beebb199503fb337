// SPDX-License-Identifier: Apache-2.0
// Jobs that end, throw, are late and never end.
#include "service/plugins/guarded_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

namespace cairn {
namespace {

using Outcome = GuardedThread::Outcome;
using std::chrono::milliseconds;

// Long enough for any machine, short enough to be waited for when a test fails.
constexpr milliseconds kPlenty{20'000};

class GuardedThreadTest : public ::testing::Test {
 protected:
  Outcome run(std::function<void()> job, milliseconds limit = kPlenty) {
    return thread_.run(std::move(job), limit, &thrown_);
  }
  // Until the late job has been noticed to have ended.
  Outcome run_when_free() {
    Outcome outcome = Outcome::kBusy;
    for (int attempt = 0; outcome == Outcome::kBusy && attempt < 20'000; ++attempt) {
      outcome = run([] {});
      if (outcome == Outcome::kBusy) std::this_thread::sleep_for(milliseconds(1));
    }
    return outcome;
  }

  GuardedThread thread_;
  std::string thrown_;
};

TEST_F(GuardedThreadTest, RunsJobsOnOneOtherThread) {
  std::thread::id first;
  std::thread::id second;
  EXPECT_EQ(run([&] { first = std::this_thread::get_id(); }), Outcome::kDone);
  EXPECT_EQ(run([&] { second = std::this_thread::get_id(); }), Outcome::kDone);
  EXPECT_NE(first, std::this_thread::get_id());
  EXPECT_EQ(first, second);
}

TEST_F(GuardedThreadTest, SaysWhatWasThrown) {
  EXPECT_EQ(run([] { throw std::runtime_error("out of ideas"); }), Outcome::kThrew);
  EXPECT_EQ(thrown_, "an exception: out of ideas");
  EXPECT_EQ(run([] { throw 42; }), Outcome::kThrew);
  EXPECT_EQ(thrown_, "an exception");
  EXPECT_EQ(run([] {}), Outcome::kDone);
}

TEST_F(GuardedThreadTest, ALateJobBlocksOnlyOthers) {
  const auto release = std::make_shared<std::atomic<bool>>(false);
  const auto late_job = [release] {
    while (!release->load()) std::this_thread::yield();
  };
  EXPECT_EQ(run(late_job, milliseconds(5)), Outcome::kLate);
  EXPECT_EQ(run([] {}), Outcome::kBusy);
  release->store(true);
  EXPECT_EQ(run_when_free(), Outcome::kDone);
}

TEST_F(GuardedThreadTest, AJobThatNeverEndsDoesNotKeepItsOwner) {
  const auto release = std::make_shared<std::atomic<bool>>(false);
  {
    GuardedThread thread;
    std::string thrown;
    EXPECT_EQ(thread.run(
                  [release] {
                    while (!release->load()) std::this_thread::yield();
                  },
                  milliseconds(5), &thrown),
              Outcome::kLate);
  }
  release->store(true);
}

}  // namespace
}  // namespace cairn
