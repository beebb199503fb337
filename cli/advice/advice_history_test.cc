// SPDX-License-Identifier: Apache-2.0
#include "cli/advice/advice_history.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
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
