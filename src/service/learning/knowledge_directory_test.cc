// SPDX-License-Identifier: Apache-2.0
#include "service/learning/knowledge_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "policy/prefetch/history_replay.h"

namespace cairn::node {
namespace {

namespace fs = std::filesystem;

class KnowledgeDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/cairn-orders-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string directory() const { return root_ + "/state/orders"; }
  KnowledgeDirectory shelf(const KnowledgeDirectory::Bounds& bounds = {}) {
    return {directory(), bounds, [this](const std::string& what) { complaints_.push_back(what); }};
  }
  std::string path_of(std::uint64_t key) const {
    return directory() + "/" + KnowledgeDirectory::file_name(key);
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory()), fs::directory_iterator()));
  }

  // A node on which a file was read in an order of its own.
  static FileKnowledgePtr read(NodeKnowledge& node, std::uint64_t key, int blocks = 100) {
    std::vector<int> order(static_cast<std::size_t>(blocks));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(key));
    const FileKnowledgePtr file = node.file(key);
    HistoryReplay stream(file->history);
    for (const int block : order) stream.observe(BlockRun{2 * block, 1});
    return file;
  }

  std::string root_;
  std::vector<std::string> complaints_;
};

TEST_F(KnowledgeDirectoryTest, TheNextNodeKnowsWhatThisOneLearned) {
  NodeKnowledge first;
  KnowledgeDirectory kept = shelf();
  first.set_shelf(&kept);
  const std::vector<BlockRun> entries = read(first, 7)->history.entries();
  first.put_away();
  EXPECT_EQ(kept.counts().put, 1U);

  NodeKnowledge second;
  KnowledgeDirectory found = shelf();
  second.set_shelf(&found);
  EXPECT_EQ(second.file(7)->history.entries(), entries);
  EXPECT_TRUE(second.file(8)->history.entries().empty());
  EXPECT_EQ(found.counts().fetched, 1U);
  struct stat status{};
  ASSERT_EQ(::stat(path_of(7).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(KnowledgeDirectoryTest, WhatIsForgottenForOthersIsKept) {
  KnowledgeOptions options;
  options.files_max = 4;
  NodeKnowledge node(options);
  KnowledgeDirectory kept = shelf();
  node.set_shelf(&kept);
  for (std::uint64_t key = 1; key <= 6; ++key) (void)read(node, key);
  EXPECT_LE(node.files(), 4U);
  EXPECT_FALSE(node.file(1)->history.entries().empty()) << "fetched again";
}

TEST_F(KnowledgeDirectoryTest, WhatTeachesNothingIsNotKept) {
  NodeKnowledge node;
  KnowledgeDirectory kept = shelf();
  node.set_shelf(&kept);
  (void)read(node, 1, 4);
  HistoryReplay stream(node.file(2)->history);
  for (int block = 0; block < 1000; ++block) stream.observe(BlockRun{block, 1});
  node.put_away();
  EXPECT_FALSE(fs::exists(directory())) << "not even the directory is made";
}

TEST_F(KnowledgeDirectoryTest, WhatHasNotChangedIsNotWrittenAgain) {
  {
    NodeKnowledge node;
    KnowledgeDirectory kept = shelf();
    node.set_shelf(&kept);
    (void)read(node, 1);
    node.put_away();
    node.put_away();
    EXPECT_EQ(kept.counts().put, 1U);
  }
  const auto long_ago = fs::last_write_time(path_of(1)) - std::chrono::hours(24);
  fs::last_write_time(path_of(1), long_ago);
  NodeKnowledge node;
  KnowledgeDirectory kept = shelf();
  node.set_shelf(&kept);
  (void)node.file(1);
  node.put_away();
  EXPECT_EQ(kept.counts().put, 0U);
  EXPECT_GT(fs::last_write_time(path_of(1)), long_ago) << "it was used";
}

TEST_F(KnowledgeDirectoryTest, WhatWasUsedLongestAgoGoesFirst) {
  NodeKnowledge node;
  KnowledgeDirectory kept = shelf({.files_max = 3});
  node.set_shelf(&kept);
  for (std::uint64_t key = 1; key <= 5; ++key) (void)read(node, key);
  node.put_away();
  for (std::uint64_t key = 1; key <= 5; ++key) {
    const auto age = std::chrono::hours(key == 2 ? 1 : 10 * key);
    fs::last_write_time(path_of(key), fs::file_time_type::clock::now() - age);
  }
  std::ofstream(directory() + "/README") << "not ours\n";
  kept.tidy();
  for (std::uint64_t key = 1; key <= 5; ++key) EXPECT_EQ(fs::exists(path_of(key)), key <= 3) << key;
  EXPECT_TRUE(fs::exists(directory() + "/README"));

  KnowledgeDirectory small = shelf({.bytes_max = fs::file_size(path_of(2)) + 10});
  small.tidy();
  EXPECT_EQ(files(), 2U) << "the last used and what is not ours";
  EXPECT_TRUE(fs::exists(path_of(2)));
}

TEST_F(KnowledgeDirectoryTest, WhatIsDamagedIsNamedAndReplaced) {
  fs::create_directories(directory());
  std::ofstream(path_of(1)) << "hello, world\n";
  NodeKnowledge node;
  KnowledgeDirectory kept = shelf();
  node.set_shelf(&kept);
  (void)read(node, 1);
  ASSERT_EQ(complaints_.size(), 1U);
  EXPECT_EQ(complaints_[0], path_of(1) + ": is not a file of read orders; begun anew");
  node.put_away();
  NodeKnowledge next;
  next.set_shelf(&kept);
  EXPECT_FALSE(next.file(1)->history.entries().empty());
}

TEST_F(KnowledgeDirectoryTest, WhereNothingCanBeWrittenThatIsSaidOnce) {
  std::ofstream(root_ + "/state") << "a file where a directory should be\n";
  NodeKnowledge node;
  KnowledgeDirectory kept = shelf();
  node.set_shelf(&kept);
  for (std::uint64_t key = 1; key <= 5; ++key) (void)read(node, key);
  node.put_away();
  EXPECT_EQ(complaints_.size(), 1U);
}

}  // namespace
}  // namespace cairn::node
