// SPDX-License-Identifier: Apache-2.0
// Which directory the figures of the store are of, and that nobody waits for them.
#include "service/treatment/store_figures.h"

#include <gtest/gtest.h>

#include <semaphore>
#include <string>
#include <thread>

namespace cairn::node {
namespace {

class StoreFiguresTest : public ::testing::Test {
 protected:
  // A store whose figures say which directory was asked for, and which answers when it is let.
  StoreFigures::Look store() {
    return [this](const std::string& directory) {
      may_answer_.acquire();
      return profiler::TierFigures{.source = directory};
    };
  }
  std::string answer_of(StoreFigures& figures, const StoreFigures::Figures& before = nullptr) {
    may_answer_.release();
    StoreFigures::Figures found = figures.last();
    while (found == before) {
      std::this_thread::yield();
      found = figures.last();
    }
    return found->source;
  }

  NodeConfig config_;
  RunTable runs_;
  BufferedDirectories directories_{config_, runs_};
  std::counting_semaphore<> may_answer_{0};
};

TEST_F(StoreFiguresTest, WithoutDirectoriesOfItsOwnANodeHasTheStoreOfItsFirstRun) {
  StoreFigures figures(directories_, store());
  EXPECT_EQ(figures.last_or_ask(), nullptr) << "no run has begun";
  ASSERT_TRUE(runs_.begin({.id = "7", .directory = "/pfs/first"}));
  EXPECT_EQ(figures.last_or_ask(), nullptr) << "the store has not answered, and nobody waits";
  ASSERT_TRUE(runs_.begin({.id = "6", .directory = "/pfs/second"}));
  EXPECT_EQ(answer_of(figures), "/pfs/first");
  runs_.end("7");
  const StoreFigures::Figures before = figures.last();
  figures.ask();
  EXPECT_EQ(answer_of(figures, before), "/pfs/first") << "what is in the tiers came from there";
}

TEST_F(StoreFiguresTest, ARunThatSaysNoPathHasNoStore) {
  StoreFigures figures(directories_, store());
  ASSERT_TRUE(runs_.begin({.id = "7", .directory = ""}));
  ASSERT_TRUE(runs_.begin({.id = "8", .directory = "relative"}));
  figures.ask();
  EXPECT_EQ(figures.last_or_ask(), nullptr);
  ASSERT_TRUE(runs_.begin({.id = "9", .directory = "/pfs/first"}));
  figures.ask();
  EXPECT_EQ(answer_of(figures), "/pfs/first");
}

TEST_F(StoreFiguresTest, ADirectoryOfTheNodeComesBeforeThoseOfItsRuns) {
  config_.buffer_directories = {"/pfs/project", "/pfs/other"};
  ASSERT_TRUE(runs_.begin({.id = "7", .directory = "/home"}));
  StoreFigures figures(directories_, store());
  figures.ask();
  EXPECT_EQ(answer_of(figures), "/pfs/project");
}

TEST_F(StoreFiguresTest, AStoreThatWasAskedIsNotAskedAgainByThoseWhoWantToKnow) {
  config_.buffer_directories = {"/pfs/project"};
  StoreFigures figures(directories_, store());
  for (int time = 0; time < 3; ++time) EXPECT_EQ(figures.last_or_ask(), nullptr);
  EXPECT_EQ(answer_of(figures), "/pfs/project");
  const StoreFigures::Figures found = figures.last();
  EXPECT_EQ(figures.last_or_ask(), found);
  figures.stop();  // which would wait for a second answer
}

}  // namespace
}  // namespace cairn::node
