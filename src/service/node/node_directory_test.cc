// SPDX-License-Identifier: Apache-2.0
#include "service/node/node_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace cairn::node {
namespace {

class NodeDirectoryTest : public ::testing::Test {
 protected:
  NodeDirectoryTest() {
    std::string pattern = ::testing::TempDir() + "cairn-directory-XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  ~NodeDirectoryTest() override { std::filesystem::remove_all(root_); }

  std::string path() const { return root_ + "/n"; }
  bool is_locked() const {
    const UniqueFd other(::open((path() + "/node.pid").c_str(), O_RDWR | O_CLOEXEC));
    return other && ::flock(other.get(), LOCK_EX | LOCK_NB) != 0;
  }
  std::string pid_file() const {
    std::string text;
    std::ifstream(path() + "/node.pid") >> text;
    return text;
  }

  std::string root_;
};

// A label names the lock by its number: under the old one the next service would take whatever is
// opened there for the lock, and write its process number into it.
TEST_F(NodeDirectoryTest, ALockThatIsMadeAgainKeepsItsNumber) {
  auto directory = NodeDirectory::open(path(), "n");
  ASSERT_TRUE(directory) << directory.status().message();
  const int number = directory->lock();
  ASSERT_GE(number, 0);
  ASSERT_EQ(::unlink((path() + "/node.pid").c_str()), 0);
  ASSERT_TRUE(directory->restore());
  EXPECT_EQ(directory->lock(), number);
  EXPECT_TRUE(is_locked());
}

TEST_F(NodeDirectoryTest, ASuccessorTakesTheLockOver) {
  auto first = NodeDirectory::open(path(), "n");
  ASSERT_TRUE(first) << first.status().message();
  std::ofstream(path() + "/node.pid") << "1";
  UniqueFd left(::dup(first->lock()));
  auto next = NodeDirectory::adopt(path(), "n", std::move(left));
  ASSERT_TRUE(next) << next.status().message();
  EXPECT_EQ(pid_file(), std::to_string(::getpid()));
  EXPECT_TRUE(is_locked());
}

TEST_F(NodeDirectoryTest, ASuccessorThatCannotWriteItsNumberGoesOn) {
  auto first = NodeDirectory::open(path(), "n");
  ASSERT_TRUE(first) << first.status().message();
  UniqueFd read_only(::open((path() + "/node.pid").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(NodeDirectory::adopt(path(), "n", std::move(read_only)));
}

// As HDF5's driver looks whether the node of a directory lives (frontends/driver/node_search.h).
TEST_F(NodeDirectoryTest, AProgramThatLooksForNodesKeepsNoneFromStarting) {
  ASSERT_EQ(::mkdir(path().c_str(), 0700), 0);
  UniqueFd seen(::open((path() + "/node.pid").c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(seen.get(), LOCK_SH | LOCK_NB), 0);
  std::thread program([&seen] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    seen.reset();
  });
  const auto directory = NodeDirectory::open(path(), "n");
  program.join();
  EXPECT_TRUE(directory) << directory.status().message();
}

TEST_F(NodeDirectoryTest, ANameThatANodeHasIsNobodyElses) {
  const auto first = NodeDirectory::open(path(), "n");
  ASSERT_TRUE(first);
  EXPECT_EQ(NodeDirectory::open(path(), "n").status().code(), StatusCode::kExists);
  EXPECT_TRUE(is_locked()) << "the question has not cost the node its lock";
}

}  // namespace
}  // namespace cairn::node
