// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/chunk_gatherer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include "memory/backing/posix_backing.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/tiers/array_board.h"
#include "memory/tiers/testing/test_memory.h"
#include "service/gathering/testing/kept_region.h"

namespace cairn::node {
namespace {

using arrays::Box;
using arrays::FileArray;

// An array of 1024 rows of 256 cells behind a header, each cell its own number; the test's process
// reads it, in slot 1.
class ChunkGathererTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kRows = 1024;
  static constexpr std::uint64_t kColumns = 256;
  static constexpr std::uint64_t kHeaderBytes = 2048;

  ChunkGathererTest() {
    cells_.resize(kRows * kColumns);
    std::iota(cells_.begin(), cells_.end(), 0U);
    store(kHeaderBytes, cells_.data(), cells_.size() * sizeof cells_[0]);
    memory_.slot(1).pid.store(::getpid());
    // A file that has just changed is left alone.
    std::this_thread::sleep_for(std::chrono::milliseconds(80));
    open();
    gatherer_.start();
  }
  ~ChunkGathererTest() override { gatherer_.stop(); }

  void store(std::uint64_t at, const void* bytes, std::size_t length) const {
    EXPECT_EQ(::pwrite(fd_.get(), bytes, length, static_cast<off_t>(at)),
              static_cast<ssize_t>(length));
  }
  void open() {
    StoreStatus status;
    ASSERT_EQ(file_.status(&status), 0);
    object_ = open_object(actor_, file_, status, false);
    ASSERT_NE(object_, ObjectIndex::kNone);
  }
  // As the program's own reads and what is fetched for it would.
  void bring_in() {
    std::vector<std::uint32_t> found(cells_.size());
    NoService nobody;
    const ObjectAccess access{actor_, object_, file_, nobody};
    EXPECT_EQ(read_object(access, kHeaderBytes, found.data(), found.size() * sizeof found[0]),
              static_cast<ssize_t>(found.size() * sizeof found[0]));
    EXPECT_EQ(found, cells_);
  }
  Object& record() { return memory_.objects().at(object_); }

  static FileArray array() { return {{kRows, kColumns}, sizeof(std::uint32_t), kHeaderBytes}; }
  static Box tile(std::uint64_t row, std::uint64_t column) {
    return {{row * 256, column * 64}, {256, 64}};
  }
  void read(const Box& box) {
    gatherer_.on_array_read({object_, ::getpid(), fd_.get(), array(), box, false}, actor_.self);
  }
  // The cells of a box as the tiers have them, or nothing.
  std::vector<std::uint32_t> gathered(const Box& box) { return gathered_of(array(), box); }
  std::vector<std::uint32_t> gathered_of(const FileArray& array, const Box& box) {
    const std::uint64_t bytes = array.bytes_of(box);
    const StoreStatus status =
        status_of_region(memory_.objects(), record().key(),
                         {arrays::region_name(array, box), bytes, FileVersion::of(record())});
    const std::vector<std::byte> kept = testing::kept_region(actor_, status);
    std::vector<std::uint32_t> found(kept.size() / sizeof(std::uint32_t));
    std::copy(kept.begin(), kept.end(), std::as_writable_bytes(std::span(found)).begin());
    return found;
  }
  std::vector<std::uint32_t> wanted(const Box& box) const {
    std::vector<std::uint32_t> found;
    for (std::uint64_t row = box.first[0]; row < box.end(0); ++row) {
      for (std::uint64_t column = box.first[1]; column < box.end(1); ++column)
        found.push_back(cells_[row * kColumns + column]);
    }
    return found;
  }

  NodeMemory memory_ = testing::make_memory(testing::memory_only(16 * testing::kMiB));
  Actor actor_ = testing::make_actor(memory_);
  StoreFiles files_{memory_};
  Flusher flusher_{memory_, files_, memory_.owners().current(ClientSlot::kOfService),
                   FlushOptions(), nullptr};
  std::shared_mutex fetches_;
  ChunkGatherer gatherer_{
      {memory_, memory_.owners().current(ClientSlot::kOfService), files_, flusher_, fetches_, 25}};
  UniqueFd fd_{testing::make_unnamed_file()};
  PosixBacking file_{fd_.get(), O_RDWR};
  ObjectIndex object_ = ObjectIndex::kNone;
  std::vector<std::uint32_t> cells_;
};

TEST_F(ChunkGathererTest, TheNextTilesAreThereBeforeTheyAreRead) {
  for (std::uint64_t column = 0; column < 4; ++column) read(tile(0, column));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_TRUE(gathered(tile(1, 0)).empty()) << "it waits for its rows";
  bring_in();
  gatherer_.await_quiet();
  EXPECT_EQ(gathered(tile(1, 0)), wanted(tile(1, 0)));
  EXPECT_TRUE(gathered(tile(3, 0)).empty()) << "nobody is near it";
  EXPECT_TRUE(gathered(tile(0, 2)).empty()) << "it was read once";
  GridNumbers grid;
  ASSERT_TRUE(memory_.array_board().find({object_, arrays::array_name(array())}, &grid));
  EXPECT_EQ(grid.dimensions, 2u);
  EXPECT_EQ(grid.rows[0], (GridNumbers::Row{256, 64}));
}

// The next time step, or another field: its chunks come from its first box on.
TEST_F(ChunkGathererTest, AnArrayOfTheSameShapeIsReadAlike) {
  constexpr std::uint64_t kHalf = kRows / 2;
  const FileArray earlier{{kHalf, kColumns}, sizeof(std::uint32_t), kHeaderBytes};
  FileArray later = earlier;
  later.offset += earlier.bytes();
  const auto read_of = [this](const FileArray& array, const Box& box) {
    gatherer_.on_array_read({object_, ::getpid(), fd_.get(), array, box, false}, actor_.self);
  };
  bring_in();
  for (std::uint64_t column = 0; column < 4; ++column) read_of(earlier, tile(0, column));
  read_of(later, tile(0, 0));
  gatherer_.await_quiet();
  const Box there{{kHalf, 64}, {256, 64}};
  EXPECT_EQ(gathered_of(later, tile(0, 1)), wanted(there));
}

TEST_F(ChunkGathererTest, OnceABoxIsReadAgainThoseThatAreReadStay) {
  bring_in();
  read(tile(0, 2));
  gatherer_.await_quiet();
  EXPECT_TRUE(gathered(tile(0, 2)).empty());
  read(tile(0, 2));
  read(tile(2, 3));
  gatherer_.await_quiet();
  EXPECT_EQ(gathered(tile(0, 2)), wanted(tile(0, 2)));
  EXPECT_EQ(gathered(tile(2, 3)), wanted(tile(2, 3)));
}

TEST_F(ChunkGathererTest, AChunkFromBeforeAWriterDiedIsNobodys) {
  bring_in();
  for (std::uint64_t column = 0; column < 4; ++column) read(tile(0, column));
  gatherer_.await_quiet();
  ASSERT_EQ(gathered(tile(1, 0)), wanted(tile(1, 0)));
  memory_.objects().note_cut_write(object_);
  EXPECT_TRUE(gathered(tile(1, 0)).empty());
}

TEST_F(ChunkGathererTest, NothingIsKeptOfAFileThatHasJustChanged) {
  store(0, "changed", 7);
  // However slow the machine is, this stays "just now".
  const timespec ahead{::time(nullptr) + 3600, 1};
  const timespec times[2] = {ahead, ahead};
  ASSERT_EQ(::futimens(fd_.get(), times), 0);
  open();
  bring_in();
  for (std::uint64_t column = 0; column < 4; ++column) read(tile(0, column));
  gatherer_.await_quiet();
  EXPECT_TRUE(gathered(tile(1, 0)).empty());
  EXPECT_TRUE(gathered(tile(0, 2)).empty());
}

TEST_F(ChunkGathererTest, NothingIsGatheredWhereTheKernelHasASay) {
  bring_in();
  record().through.store(1);
  for (std::uint64_t column = 0; column < 4; ++column) read(tile(0, column));
  gatherer_.await_quiet();
  record().through.store(0);
  EXPECT_TRUE(gathered(tile(1, 0)).empty());
}

arrays::ChunkGrid grid_of(const arrays::Coordinates& shape, const arrays::Coordinates& chunk) {
  return *arrays::ChunkGrid::of(shape, arrays::ChunkShape::plain(chunk));
}

TEST_F(ChunkGathererTest, WithAHintTheSecondTileIsThereBeforeItIsRead) {
  bring_in();
  EXPECT_TRUE(gatherer_.grids_of(object_, array()).empty());
  const auto grid = grid_of(array().shape, {256, 64});
  gatherer_.expect(object_, array(), grid);
  ASSERT_EQ(gatherer_.grids_of(object_, array()).size(), 1u);
  EXPECT_EQ(gatherer_.grids_of(object_, array()).front().shape(), grid.shape());
  read(tile(0, 0));
  gatherer_.await_quiet();
  EXPECT_EQ(gathered(tile(0, 1)), wanted(tile(0, 1)));
  EXPECT_TRUE(gathered(tile(0, 2)).empty()) << "nobody is near it";
}

TEST_F(ChunkGathererTest, WhatIsReadGoesBeforeAHintThatIsWrong) {
  bring_in();
  gatherer_.expect(object_, array(), grid_of(array().shape, {512, 256}));
  for (std::uint64_t column = 0; column < 4; ++column) read(tile(0, column));
  gatherer_.await_quiet();
  EXPECT_EQ(gathered(tile(1, 0)), wanted(tile(1, 0)));
  const auto grids = gatherer_.grids_of(object_, array());
  EXPECT_EQ(grids.front().shape().chunk, (arrays::Coordinates{256, 64}));
  EXPECT_EQ(grids.back().shape().chunk, (arrays::Coordinates{512, 256})) << "as it was before";
}

// It has the grid of the one that was killed, so the first box shows which one is next.
TEST_F(ChunkGathererTest, ANewServiceGoesOnInTheGridOfTheOneBefore) {
  bring_in();
  for (std::uint64_t column = 0; column < 4; ++column) read(tile(0, column));
  gatherer_.await_quiet();
  gatherer_.stop();
  ChunkGatherer successor{
      {memory_, memory_.owners().current(ClientSlot::kOfService), files_, flusher_, fetches_, 25}};
  successor.start();
  successor.on_array_read({object_, ::getpid(), fd_.get(), array(), tile(2, 0), false},
                          actor_.self);
  successor.await_quiet();
  successor.stop();
  EXPECT_EQ(gathered(tile(2, 1)), wanted(tile(2, 1)));
}

TEST_F(ChunkGathererTest, AGridOfAnotherArrayIsNobodys) {
  bring_in();
  GridNumbers numbers;
  numbers.dimensions = 2;
  numbers.rows[0] = {2 * kRows, 64};
  memory_.array_board().publish({object_, arrays::array_name(array())}, numbers);
  for (std::uint64_t column = 0; column < 4; ++column) read(tile(0, column));
  gatherer_.await_quiet();
  EXPECT_EQ(gathered(tile(1, 0)), wanted(tile(1, 0)));
}

TEST_F(ChunkGathererTest, NothingIsGatheredWhileSomebodyMayWriteTheFile) {
  bring_in();
  record().writers.store(1);
  for (std::uint64_t column = 0; column < 4; ++column) read(tile(0, column));
  gatherer_.await_quiet();
  EXPECT_TRUE(gathered(tile(1, 0)).empty());
}

TEST_F(ChunkGathererTest, AnArrayBeyondTheEndOfItsFileIsLeftAlone) {
  FileArray longer = array();
  longer.shape = {kRows + 1, kColumns};
  bring_in();
  for (std::uint64_t column = 0; column < 4; ++column)
    gatherer_.on_array_read({object_, ::getpid(), fd_.get(), longer, tile(0, column), false},
                            actor_.self);
  gatherer_.await_quiet();
  EXPECT_EQ(memory_.objects().used(), raw(object_) + 1) << "no region was made";
}

// Readers tell their boxes, users their hints, and commands look, while chunks are gathered.
TEST_F(ChunkGathererTest, ManyReadAndLookWhileItGathers) {
  bring_in();
  std::atomic<bool> is_over{false};
  std::vector<std::thread> others;
  for (std::uint64_t row = 0; row < 4; ++row) {
    others.emplace_back([this, row] {
      for (std::uint64_t turn = 0; turn < 12; ++turn) read(tile(row, turn % 4));
    });
  }
  others.emplace_back([this] {
    for (int turn = 0; turn < 20; ++turn)
      gatherer_.expect(object_, array(), grid_of(array().shape, {256, 64}));
  });
  others.emplace_back([this, &is_over] {
    while (!is_over.load()) (void)gatherer_.grids_of(object_, array());
  });
  std::size_t whole = 0;
  const auto look_at_all = [this, &whole] {
    for (std::uint64_t number = 0; number < 16; ++number) {
      const Box box = tile(number / 4, number % 4);
      const std::vector<std::uint32_t> found = gathered(box);
      whole += found.empty() ? 0 : 1;
      ASSERT_TRUE(found.empty() || found == wanted(box)) << number;
    }
  };
  for (int turn = 0; turn < 10; ++turn) look_at_all();
  is_over.store(true);
  for (std::thread& other : others) other.join();
  gatherer_.await_quiet();
  whole = 0;
  look_at_all();
  EXPECT_GT(whole, 0u);
}

}  // namespace
}  // namespace cairn::node
