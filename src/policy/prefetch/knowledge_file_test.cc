// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/knowledge_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/kept_file.h"
#include "policy/prefetch/history_replay.h"

namespace cairn {
namespace {

constexpr std::uint64_t kKey = 0x17a3f5e09c4d2b10;

std::vector<BlockRun> shuffled_order(std::uint64_t seed, std::int64_t blocks) {
  std::vector<BlockRun> order;
  for (std::int64_t block = 0; block < blocks; ++block) order.push_back({3 * block, 1});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
  return order;
}

void read(FileKnowledge& file, const std::vector<BlockRun>& order) {
  HistoryReplay stream(file.history);
  for (const BlockRun& run : order) stream.observe(run);
}

struct KnowledgeFile : ::testing::Test {
  NodeKnowledge node;
  FileKnowledgePtr file = node.file(1);
  FileKnowledgePtr other = node.file(2);
};

TEST_F(KnowledgeFile, WhatIsKeptForetellsTheSameOrder) {
  const std::vector<BlockRun> order = shuffled_order(1, 500);
  read(*file, order);
  file->scores[5] = 0.75F;
  file->lookahead.restore(40);
  ASSERT_TRUE(decode_knowledge(encode_knowledge(kKey, *file), kKey, other.get()));
  EXPECT_EQ(other->scores[5], 0.75F);
  EXPECT_EQ(other->lookahead.blocks(), 40);
  HistoryReplay stream(other->history);
  int right = 0;
  for (const BlockRun& run : order) {
    BlockRun next;
    right += stream.predict({&next, 1}) == 1 && next == run ? 1 : 0;
    stream.observe(run);
  }
  EXPECT_EQ(right, 498) << "all but the first two";
}

TEST_F(KnowledgeFile, WhatIsKnownIsNotWrittenTwice) {
  const std::vector<BlockRun> order = shuffled_order(2, 300);
  read(*file, order);
  const std::string before = encode_knowledge(kKey, *file);
  ASSERT_TRUE(decode_knowledge(before, kKey, other.get()));
  read(*other, order);
  EXPECT_LE(other->history.entries().size(), file->history.entries().size() + 8)
      << "reading in the same order again adds no more than its beginning";
}

TEST_F(KnowledgeFile, EveryTruncationAndFlippedBitIsNoticed) {
  read(*file, shuffled_order(3, 40));
  const std::string bytes = encode_knowledge(kKey, *file);
  for (std::size_t kept = 0; kept < bytes.size(); ++kept) {
    const Status status = decode_knowledge(bytes.substr(0, kept), kKey, other.get());
    ASSERT_EQ(status.code(), StatusCode::kInvalid) << kept;
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      ASSERT_FALSE(decode_knowledge(changed, kKey, other.get())) << "byte " << at << " bit " << bit;
    }
  }
  EXPECT_TRUE(other->history.entries().empty()) << "nothing is half taken";
}

TEST_F(KnowledgeFile, AnotherFileIsNamed) {
  const Status status = decode_knowledge(encode_knowledge(kKey, *file), kKey + 1, other.get());
  EXPECT_EQ(status.code(), StatusCode::kIncompatible);
  EXPECT_EQ(status.message(), "is about another file");
}

// The damage has a right sum.
TEST_F(KnowledgeFile, RandomBytesWithARightSumNeverDoHarm) {
  const std::vector<BlockRun> order = shuffled_order(4, 60);
  read(*file, order);
  const std::string whole = encode_knowledge(kKey, *file);
  unsigned accepted = 0;
  for (std::uint64_t seed = 1; seed <= 5'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::string bytes = whole.substr(0, whole.size() - 8);
    for (std::uint64_t change = random() % 4 + 1; change > 0; --change)
      bytes[28 + random() % (bytes.size() - 28)] = static_cast<char>(random());
    append_bytes(&bytes, fnv1a(bytes));
    if (!decode_knowledge(bytes, kKey, other.get())) continue;
    ++accepted;
    HistoryReplay stream(other->history);
    std::vector<BlockRun> next(64);
    for (const BlockRun& run : order) {
      stream.observe(run);
      const std::size_t count = stream.predict(next);
      ASSERT_LE(count, next.size());
    }
  }
  EXPECT_GT(accepted, 100U) << "else this shows nothing";
}

TEST_F(KnowledgeFile, TheLongestHistoryFits) {
  std::vector<BlockRun> entries(KnowledgeOptions{}.history_entries_max, BlockRun{7, 1});
  ASSERT_TRUE(file->history.restore(entries));
  const std::string bytes = encode_knowledge(kKey, *file);
  EXPECT_LE(bytes.size(), kKnowledgeFileBytesMax);
  EXPECT_TRUE(decode_knowledge(bytes, kKey, other.get()));
}

TEST_F(KnowledgeFile, WhereThereIsNoRoomNothingChanges) {
  KnowledgeOptions options;
  options.file_bytes_max = 4096;
  NodeKnowledge small(options);
  const FileKnowledgePtr into = small.file(1);
  read(*file, shuffled_order(5, 500));
  const Status status = decode_knowledge(encode_knowledge(kKey, *file), kKey, into.get());
  EXPECT_EQ(status.code(), StatusCode::kExhausted);
  EXPECT_TRUE(into->history.entries().empty());
  EXPECT_EQ(small.bytes_used(), 0U);
}

}  // namespace
}  // namespace cairn
