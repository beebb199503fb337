// SPDX-License-Identifier: Apache-2.0
// What is kept of which files, and within which bounds.
#include "policy/prefetch/knowledge.h"

#include <gtest/gtest.h>

#include "base/random_source.h"
#include "policy/prefetch/chooser.h"

namespace cairn {
namespace {

void read_without_order(NodeKnowledge& node, std::uint64_t key, int reads) {
  Chooser chooser(node.file(key), node);
  RandomSource random(key);
  for (int read = 0; read < reads; ++read) chooser.observe(BlockRun{random.below(1U << 20), 1});
}

TEST(NodeKnowledge, AFileIsKnownAgain) {
  NodeKnowledge node;
  const FileKnowledge* first = node.file(7).get();
  EXPECT_EQ(node.file(7).get(), first);
  EXPECT_NE(node.file(8).get(), first);
  read_without_order(node, 7, 100);
  EXPECT_FALSE(node.file(7)->history.entries().empty());
  node.forget(7);
  EXPECT_TRUE(node.file(7)->history.entries().empty());
}

TEST(NodeKnowledge, TheLongestUnopenedFilesAreForgottenFirst) {
  KnowledgeOptions options;
  options.files_max = 8;
  NodeKnowledge node(options);
  const FileKnowledgePtr in_use = node.file(1);
  for (std::uint64_t key = 2; key < 100; ++key) {
    read_without_order(node, key, 20);
    ASSERT_LE(node.files(), 8u);
  }
  EXPECT_EQ(node.file(1), in_use);
  EXPECT_FALSE(node.file(99)->history.entries().empty());
  EXPECT_TRUE(node.file(2)->history.entries().empty());
}

TEST(NodeKnowledge, FilesBeyondThoseInUseAreKnownWhileTheyAreOpen) {
  KnowledgeOptions options;
  options.files_max = 2;
  NodeKnowledge node(options);
  const std::array<FileKnowledgePtr, 3> in_use = {node.file(1), node.file(2), node.file(3)};
  EXPECT_EQ(node.files(), 2u);
  EXPECT_NE(in_use[2], nullptr);
}

TEST(NodeKnowledge, AllFilesTogetherKeepToTheBudget) {
  KnowledgeOptions options;
  options.file_bytes_max = 256 * 1024;
  NodeKnowledge node(options);
  for (std::uint64_t key = 1; key < 60; ++key) {
    read_without_order(node, key, 3000);
    ASSERT_LE(node.bytes_used(), options.file_bytes_max);
  }
  // The latest have found room.
  EXPECT_GT(node.file(59)->history.entries().size(), 500u);
}

TEST(NodeKnowledge, AStreamBeginsWithWhatOthersHaveFound) {
  NodeKnowledge node;
  const auto read_strided = [&](std::int64_t from, int reads) {
    Chooser chooser(node.file(1), node);
    for (int read = 0; read < reads; ++read) chooser.observe(BlockRun{from + 9 * read, 1});
    BlockRun next;
    return chooser.predict({&next, 1}).count;
  };
  // Two steps tell a stride; whether it is believed depends on what is known of the file.
  EXPECT_EQ(read_strided(0, 3), 0u);
  read_strided(1000, 100);
  EXPECT_EQ(read_strided(5000, 3), 1u);
}

}  // namespace
}  // namespace cairn
