// SPDX-License-Identifier: Apache-2.0
#include "cli/advice/advice_history.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "base/testing/temporary_folder.h"
#include "cli/terminal/failure.h"

namespace cairn::cli {
namespace {

class AdviceHistoryTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::setenv("XDG_STATE_HOME", folder_.path().c_str(), 1), 0); }
  void TearDown() override { ::unsetenv("XDG_STATE_HOME"); }
  std::string file() const { return folder_.path() + "/cairn/advice.jsonl"; }

  static ForetoldRun run(double expected, double measured, int exit_status = 0) {
    return {.when = "",
            .program = "sim",
            .expected = expected,
            .low = 0.8 * expected,
            .high = 1.2 * expected,
            .measured = measured,
            .exit_status = exit_status};
  }

  const cairn::testing::TemporaryFolder folder_{"advice"};
};

TEST_F(AdviceHistoryTest, KeepsTheNewestRuns) {
  const AdviceHistory history;
  EXPECT_TRUE(history.runs().empty());
  for (std::size_t number = 1; number <= AdviceHistory::kRunsMax + 2; ++number)
    history.add(run(static_cast<double>(number), 1));
  const auto runs = history.runs();
  ASSERT_EQ(runs.size(), AdviceHistory::kRunsMax);
  EXPECT_EQ(runs.front().expected, 3);
  EXPECT_EQ(runs.back().expected, static_cast<double>(AdviceHistory::kRunsMax + 2));
}

TEST_F(AdviceHistoryTest, DamagedLinesAreLeftOut) {
  const AdviceHistory history;
  history.add(run(10, 10));
  std::ofstream(file(), std::ios::app) << "{\"when\": 3}\n\xff\nnull\n{\"when\": \"now\", \"prog";
  EXPECT_EQ(history.runs().size(), 1U);
}

// What follows a line that was cut off in the middle is a line of its own.
TEST_F(AdviceHistoryTest, ALineThatWasCutOffSpoilsNoOther) {
  const AdviceHistory history;
  history.add(run(10, 10));
  std::ofstream(file(), std::ios::app) << "{\"when\": \"now\", \"prog";
  history.add(run(20, 20));
  EXPECT_EQ(history.runs().size(), 2U);
}

TEST_F(AdviceHistoryTest, NothingIsLostWhereThereIsNoRoom) {
  const AdviceHistory history;
  for (std::size_t number = 0; number < AdviceHistory::kRunsMax; ++number) history.add(run(2, 1));
  const auto size = static_cast<rlim_t>(std::filesystem::file_size(file()));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{size / 2, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  EXPECT_THROW(history.add(run(3, 1)), Failure);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(history.runs().size(), AdviceHistory::kRunsMax);
  EXPECT_FALSE(std::filesystem::exists(file() + ".new"));
}

TEST_F(AdviceHistoryTest, APipeIsNotWaitedFor) {
  std::filesystem::create_directories(folder_.path() + "/cairn");
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_THROW(AdviceHistory().add(run(1, 1)), Failure);
  EXPECT_THROW((void)AdviceHistory().runs(), Failure);
}

TEST_F(AdviceHistoryTest, ManyAddAtATime) {
  constexpr int kProcesses = 8;
  constexpr int kRuns = 40;
  std::vector<pid_t> children;
  for (int number = 0; number < kProcesses; ++number) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    try {
      for (int added = 0; added < kRuns; ++added) AdviceHistory().add(run(1 + number, 1));
    } catch (const Failure& failure) {
      std::cerr << failure.what() << '\n';
      ::_exit(1);
    }
    ::_exit(0);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(AdviceHistory().runs().size(), std::size_t{kProcesses} * kRuns);
}

TEST_F(AdviceHistoryTest, RunsThatFailedAreNotCompared) {
  const std::string text =
      history_text({run(10, 10), run(10, 5), run(10, 8), run(30, 1, 1), run(30, 0)});
  EXPECT_NE(text.find("3 compared: median error 25 %, 2 inside the interval"), std::string::npos)
      << text;
  EXPECT_NE(text.find("exit status 1"), std::string::npos);
  EXPECT_NE(text.find("no I/O"), std::string::npos);
}

TEST_F(AdviceHistoryTest, AFileThatCannotBeWrittenIsNamed) {
  std::filesystem::create_directories(file());
  try {
    AdviceHistory().add(run(1, 1));
    ADD_FAILURE() << "it was written";
  } catch (const Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find(file()), std::string::npos);
  }
}

}  // namespace
}  // namespace cairn::cli
