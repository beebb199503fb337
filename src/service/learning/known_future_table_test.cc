// SPDX-License-Identifier: Apache-2.0
#include "service/learning/known_future_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "memory/backing/posix_backing.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn::node {
namespace {

constexpr std::uint32_t kNever = BlockView::kUseNever;
constexpr std::uint32_t kUnknown = BlockView::kUseUnknown;

class KnownFutureTableTest : public ::testing::Test {
 protected:
  KnownFutureTableTest()
      : memory_(testing::make_memory(testing::memory_only(16 * kBlockBytes))),
        table_(memory_),
        future_(memory_, table_) {
    const Actor actor = testing::make_actor(memory_);
    object_ = testing::make_object(actor, file_key(1, 2, 3));
  }
  ~KnownFutureTableTest() override {
    for (const std::string& path : written_) ::unlink(path.c_str());
  }

  std::string write(const std::string& text) {
    written_.push_back("/var/tmp/cairn-future-" + std::to_string(::getpid()) + "-" +
                       std::to_string(written_.size()));
    std::ofstream(written_.back()) << text;
    return written_.back();
  }
  // Items of a block each.
  void declare(const std::vector<unsigned>& items, unsigned all) {
    std::string list;
    for (const unsigned item : items) list += std::to_string(item) + "\n";
    const std::string said =
        "/data/packed list " + write(list) + " items=" + std::to_string(all) + " item-bytes=64K\n";
    auto orders = DeclaredOrders::load(write(said), [this](const std::string&) { ++complaints_; });
    ASSERT_TRUE(orders.is_ok()) << orders.status().message();
    orders_ = std::move(orders.value());
    future_.follow(&orders_, [](const ToldAccess&) { return std::string("/data/packed"); });
  }
  void tell(AccessKind kind, unsigned block, std::uint32_t stream = 9) {
    ToldAccess told;
    told.event.owner = memory_.owners().current(1);
    told.event.object = object_;
    told.event.stream = static_cast<DescriptionIndex>(stream);
    told.event.kind = kind;
    told.event.offset = std::uint64_t{block} * kBlockBytes;
    told.event.length = kBlockBytes;
    table_.follow({&told, 1});
    future_.on_accesses({&told, 1});
    table_.forget_ended();
  }
  void read(unsigned block, std::uint32_t stream = 9) { tell(AccessKind::kMiss, block, stream); }
  std::uint32_t until_use(unsigned block) const {
    BlockView view;
    view.object = object_;
    view.number = static_cast<BlockNumber>(block);
    future_.look_up(std::span(&view, 1));
    return view.until_use;
  }

  NodeMemory memory_;
  DeclaredOrders orders_;
  StreamTable table_;
  KnownFutureTable future_;
  ObjectIndex object_{};
  std::vector<std::string> written_;
  unsigned complaints_ = 0;
};

TEST_F(KnownFutureTableTest, WithoutAnOrderNothingIsKnown) {
  read(3);
  EXPECT_EQ(until_use(3), kUnknown);
  future_.follow(&orders_, [](const ToldAccess&) { return std::string(); });
  read(3);
  EXPECT_EQ(until_use(3), kUnknown);
  EXPECT_EQ(future_.known_ahead(), 0U);
}

TEST_F(KnownFutureTableTest, FollowsAReaderThroughItsOrder) {
  declare({3, 1, 2, 0, 2, 3}, 4);
  EXPECT_EQ(until_use(1), kUnknown) << "nobody reads it";
  read(3);
  EXPECT_EQ(until_use(1), 0U);
  EXPECT_EQ(until_use(2), 1U);
  EXPECT_EQ(until_use(3), 4U);
  EXPECT_EQ(until_use(7), kNever);
  EXPECT_EQ(future_.known_ahead(), 5U);
  read(1);
  EXPECT_EQ(until_use(1), kNever);
  // The hit on 2 gave no event.
  read(0);
  EXPECT_EQ(until_use(2), 0U);
  EXPECT_EQ(until_use(3), 1U);
  tell(AccessKind::kClose, 0);
  EXPECT_EQ(until_use(3), kUnknown) << "nobody reads it any more";
}

TEST_F(KnownFutureTableTest, AReadThatIsToldLateIsPastAlready) {
  declare({5, 6, 7, 8, 5, 6, 7, 8}, 9);
  read(5);
  read(7);
  read(6);
  EXPECT_EQ(until_use(8), 0U);
  EXPECT_EQ(until_use(6), 2U) << "not its next use, but the one that was passed over";
}

TEST_F(KnownFutureTableTest, ABlockIsWantedByTheFirstOfItsReaders) {
  declare({0, 1, 2, 3, 4, 5}, 6);
  read(0, 1);
  read(1, 1);
  read(2, 1);
  read(0, 2);
  EXPECT_EQ(until_use(1), 0U) << "the second reader's";
  EXPECT_EQ(until_use(4), 1U) << "the first reader's";
  tell(AccessKind::kClose, 0, 2);
  EXPECT_EQ(until_use(1), kNever);
}

TEST_F(KnownFutureTableTest, WhoKeepsToNoOrderIsNotFollowed) {
  std::vector<unsigned> order;
  for (unsigned item = 0; item < 400; ++item) order.push_back(item);
  declare(order, 2000);
  read(0);
  EXPECT_EQ(until_use(1), 0U);
  for (unsigned block = 1000; block < 1100; ++block) read(block);
  EXPECT_EQ(until_use(1), kUnknown);
  EXPECT_EQ(complaints_, 1U);
}

// The files are two blocks long each, and are opened one after the other.
TEST_F(KnownFutureTableTest, FilesAreWantedInTheOrderOfTheirOpens) {
  const Actor actor = testing::make_actor(memory_);
  std::vector<std::string> names;
  std::vector<ObjectIndex> files;
  for (int file = 0; file < 3; ++file) {
    names.push_back(write("two blocks"));
    StoreStatus status;
    ASSERT_EQ(store_status_at(AT_FDCWD, names.back().c_str(), 0, &status), 0);
    files.push_back(testing::make_object(actor, status.key));
    memory_.objects().at(files.back()).size.store(2 * kBlockBytes);
    memory_.objects().at(files.back()).opens.store(0);
  }
  std::string list;
  for (const unsigned file : {2, 0, 1, 2, 1, 0}) list += names[file] + "\n";
  auto orders = DeclaredOrders::load(write("* list " + write(list) + " lines=files\n"),
                                     [this](const std::string&) { ++complaints_; });
  ASSERT_TRUE(orders.is_ok()) << orders.status().message();
  orders_ = std::move(orders.value());
  // By the time that an open is heard of, another file has the descriptor, but for the first.
  future_.follow(&orders_, [&](const ToldAccess&) { return names[2]; });
  const auto open = [&](ObjectIndex file) {
    object_ = file;
    tell(AccessKind::kOpen, 0);
  };
  const auto until = [&](std::size_t file) {
    object_ = files[file];
    return until_use(0);
  };
  open(files[2]);
  EXPECT_EQ(until(2), 4U) << "two files of two blocks come before it is opened again";
  EXPECT_EQ(until(0), kUnknown) << "not opened yet: nobody knows which object it is";
  open(files[0]);
  EXPECT_EQ(until(2), 2U);
  EXPECT_EQ(until(0), 6U);
  open(files[1]);
  EXPECT_EQ(until(1), 2U);
  memory_.objects().at(files[0]).opens.store(1);
  EXPECT_EQ(until(0), 0U) << "a program has it open";
  memory_.objects().at(files[0]).opens.store(0);
  // No declaration names the other file.
  files.push_back(testing::make_object(actor, file_key(1, 10, 3)));
  open(files[3]);
  EXPECT_EQ(until(3), kUnknown);
  EXPECT_EQ(complaints_, 0U);
}

TEST_F(KnownFutureTableTest, TheSameJobOnceMoreOpensItsFilesOnceMore) {
  constexpr std::size_t kFiles = 60;
  const Actor actor = testing::make_actor(memory_);
  std::vector<ObjectIndex> files;
  std::string list;
  for (std::size_t file = 0; file < kFiles; ++file) {
    list += write("a block") + "\n";
    StoreStatus status;
    ASSERT_EQ(store_status_at(AT_FDCWD, written_.back().c_str(), 0, &status), 0);
    files.push_back(testing::make_object(actor, status.key));
    memory_.objects().at(files.back()).size.store(kBlockBytes);
    memory_.objects().at(files.back()).opens.store(0);
  }
  auto orders = DeclaredOrders::load(write("* list " + write(list) + " lines=files\n"),
                                     [this](const std::string&) { ++complaints_; });
  ASSERT_TRUE(orders.is_ok()) << orders.status().message();
  orders_ = std::move(orders.value());
  std::size_t opened = 0;
  future_.follow(&orders_, [&](const ToldAccess&) { return written_[opened]; });
  for (unsigned job = 0; job < 3; ++job) {
    for (opened = 0; opened < kFiles; ++opened) {
      object_ = files[opened];
      tell(AccessKind::kOpen, 0);
    }
    // The first that it opens are held against it, until they turn out to be the beginning.
    object_ = files[40];
    EXPECT_EQ(until_use(0), BlockView::kUseNever) << "job " << job;
  }
  for (opened = 0; opened < 35; ++opened) {
    object_ = files[opened];
    tell(AccessKind::kOpen, 0);
  }
  object_ = files[40];
  EXPECT_EQ(until_use(0), 5U);
  EXPECT_EQ(complaints_, 0U);
}

// 16 blocks of RAM: 48 uses are known of however long an order.
TEST_F(KnownFutureTableTest, KnowsABoundedWindow) {
  std::vector<unsigned> order;
  for (unsigned item = 0; item < 5000; ++item) order.push_back(item);
  declare(order, 5000);
  read(0);
  EXPECT_EQ(future_.known_ahead(), 48U);
  EXPECT_EQ(until_use(48), 47U);
  EXPECT_EQ(until_use(49), BlockView::kUseFarAway);
  read(0, 2);
  EXPECT_EQ(future_.known_ahead(), 48U + 24U) << "each has half of it, and more is given up slowly";
  for (unsigned block = 1; block < 100; ++block) read(block);
  EXPECT_EQ(future_.known_ahead(), 48U);
  EXPECT_EQ(until_use(100), 0U);
}

// 300 blocks in an order that its readers go through again and again.
class FoundOrderTest : public KnownFutureTableTest {
 protected:
  static constexpr unsigned kBlocks = 300;
  static unsigned block_at(unsigned place) { return place % kBlocks * 7 % kBlocks; }

  FoundOrderTest() {
    future_.follow(&orders_, [](const ToldAccess&) { return std::string(); });
  }
  // The stream has read up to this place; one batch reports that and all before it.
  void find_at(unsigned place, std::uint32_t stream = 9) {
    RepeatedOrder order;
    for (unsigned at = 0; at < kBlocks; ++at) order.runs.push_back({block_at(at), 1});
    order.at = place;
    std::vector<ToldAccess> batch;
    for (unsigned at = 0; at <= place; ++at) batch.push_back(told_of(block_at(at), stream, at));
    table_.follow(batch);
    future_.found(batch.back(), order);
    future_.on_accesses(batch);
    table_.forget_ended();
  }
  ToldAccess told_of(unsigned block, std::uint32_t stream, unsigned cycles) const {
    ToldAccess told;
    told.event.owner = memory_.owners().current(1);
    told.event.object = object_;
    told.event.stream = static_cast<DescriptionIndex>(stream);
    told.event.kind = AccessKind::kMiss;
    told.event.cycles = cycles;
    told.event.offset = std::uint64_t{block} * kBlockBytes;
    told.event.length = kBlockBytes;
    return told;
  }
};

TEST_F(FoundOrderTest, IsTakenToGoOnForEver) {
  find_at(40);
  EXPECT_EQ(until_use(block_at(41)), 0U);
  EXPECT_EQ(until_use(block_at(60)), 19U);
  for (unsigned place = 41; place < 3 * kBlocks + 5; ++place) read(block_at(place));
  EXPECT_EQ(until_use(block_at(5)), 0U);
  // Room is for 16 blocks: three times as many are known.
  EXPECT_EQ(until_use(block_at(5 + 47)), 47U);
  EXPECT_EQ(until_use(block_at(4)), BlockView::kUseFarAway) << "it has just been read";
  EXPECT_EQ(future_.known_ahead(), 48U);
}

TEST_F(FoundOrderTest, WhoOpensTheFileAnewIsKnownFromItsFirstRead) {
  find_at(40);
  tell(AccessKind::kClose, 0);
  EXPECT_EQ(until_use(block_at(41)), kUnknown);
  read(block_at(0), 10);
  EXPECT_EQ(until_use(block_at(1)), 0U);
  read(block_at(77), 11);
  EXPECT_EQ(until_use(block_at(78)), BlockView::kUseFarAway) << "of who begins elsewhere nothing";
}

TEST_F(FoundOrderTest, WhatIsDeclaredGoesBeforeIt) {
  find_at(40);
  tell(AccessKind::kClose, 0);
  std::vector<unsigned> declared;
  for (unsigned item = 0; item < kBlocks; ++item) declared.push_back(item);
  declare(declared, kBlocks);
  ASSERT_EQ(block_at(0), declared[0]) << "both begin alike";
  for (unsigned block = 0; block < 100; ++block) read(block, 10);
  EXPECT_EQ(until_use(105), 5U);
  EXPECT_EQ(complaints_, 0U);
}

TEST_F(FoundOrderTest, IsForgottenByWhoReadsOtherwise) {
  find_at(40);
  for (unsigned read_so_far = 0; read_so_far < 100; ++read_so_far) read(5000 + 3 * read_so_far);
  EXPECT_EQ(until_use(block_at(41)), kUnknown);
  EXPECT_EQ(future_.known_ahead(), 0U);
  read(block_at(0), 10);
  EXPECT_EQ(until_use(block_at(1)), kUnknown) << "by the next streams, too";
  EXPECT_EQ(complaints_, 0U) << "nobody has declared anything";
}

TEST_F(FoundOrderTest, OfAnotherFileWithTheRecordNothingIsKnown) {
  find_at(40);
  tell(AccessKind::kClose, 0);
  memory_.objects().at(object_).inode += 1;
  read(block_at(0), 10);
  EXPECT_EQ(until_use(block_at(1)), kUnknown);
}

}  // namespace
}  // namespace cairn::node
