// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/chunk_unpacker.h"

#include <gtest/gtest.h>

#ifdef CAIRN_HAVE_LIBDEFLATE

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "memory/backing/posix_backing.h"
#include "memory/backing/region_backing.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/region_keep.h"
#include "memory/tiers/testing/test_memory.h"
#include "service/gathering/testing/kept_region.h"
#include "service/gathering/testing/packed_bytes.h"

namespace cairn::node {
namespace {

using arrays::Box;
using arrays::PackedArray;
using arrays::PackedChunk;
using testing::Bytes;

// The array has 60 x 64 cells in chunks of 16 x 16, whose last row is cut. The test's process reads
// it, in slot 1, and keeps what a connector would: the table, and a chunk.
class ChunkUnpackerTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kChunks = 16;
  static constexpr std::uint64_t kHeaderBytes = 2048;

  explicit ChunkUnpackerTest(std::uint64_t room = 16 * testing::kMiB, unsigned budget_percent = 25)
      : memory_(testing::make_memory(testing::memory_only(room))),
        unpacker_({memory_, memory_.owners().current(ClientSlot::kOfService), files_, flusher_,
                   fetches_, budget_percent},
                  grids_) {
    Bytes bytes(kHeaderBytes);
    for (std::uint64_t chunk = 0; chunk < kChunks; ++chunk) {
      const Bytes packed = testing::packed(array_, cells_of(array_.file_chunk(grid_, chunk)));
      table_.push_back({bytes.size(), static_cast<std::uint32_t>(packed.size()), 0});
      bytes.insert(bytes.end(), packed.begin(), packed.end());
    }
    store(0, bytes);
    memory_.slot(1).pid.store(::getpid());
    // A file that has just changed is left alone.
    std::this_thread::sleep_for(std::chrono::milliseconds(80));
    open();
    unpacker_.start();
  }
  ~ChunkUnpackerTest() override { unpacker_.stop(); }

  void store(std::uint64_t at, const Bytes& bytes) const {
    EXPECT_EQ(::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at)),
              static_cast<ssize_t>(bytes.size()));
  }
  void open() {
    StoreStatus status;
    ASSERT_EQ(file_.status(&status), 0);
    object_ = open_object(actor_, file_, status, false);
    ASSERT_NE(object_, ObjectIndex::kNone);
  }
  Object& record() { return memory_.objects().at(object_); }

  // Each cell tells where it is.
  static Bytes cells_of(const Box& box) {
    Bytes bytes;
    for (std::uint64_t row = box.first[0]; row < box.end(0); ++row) {
      for (std::uint64_t column = box.first[1]; column < box.end(1); ++column) {
        const auto cell = static_cast<std::uint32_t>(row * 1000 + column);
        std::array<std::byte, sizeof cell> raw_cell{};
        std::memcpy(raw_cell.data(), &cell, sizeof cell);
        bytes.insert(bytes.end(), raw_cell.begin(), raw_cell.end());
      }
    }
    return bytes;
  }
  Bytes wanted(std::uint64_t chunk) const { return cells_of(grid_.chunk(chunk)); }

  StoreStatus status_of(const std::array<std::uint64_t, 2>& name, std::uint64_t bytes) {
    return status_of_region(memory_.objects(), record().key(),
                            {name, bytes, FileVersion::of(record())});
  }
  std::array<std::uint64_t, 2> name_of(std::uint64_t chunk) const {
    return arrays::packed_region_name(array_.token, grid_, array_.cell_bytes, chunk);
  }
  // As a connector keeps something.
  void keep(const std::array<std::uint64_t, 2>& name, const Bytes& bytes) {
    const StoreStatus status = status_of(name, bytes.size());
    RegionBacking backing(status, bytes.data());
    NoService nobody;
    const ObjectIndex region = open_object(actor_, backing, status, false);
    const ObjectAccess access{actor_, region, backing, nobody};
    EXPECT_TRUE(keep_whole_region(access));
    (void)close_object(access, false);
  }
  void keep_table() {
    Bytes bytes(table_.size() * sizeof(PackedChunk));
    std::memcpy(bytes.data(), table_.data(), bytes.size());
    keep(arrays::chunk_table_name(array_), bytes);
  }
  void keep_chunk(std::uint64_t chunk) { keep(name_of(chunk), wanted(chunk)); }

  // What the tiers have of a chunk: all of it, or nothing.
  Bytes found(std::uint64_t chunk) {
    return testing::kept_region(actor_, status_of(name_of(chunk), wanted(chunk).size()));
  }
  void read(const Box& box) {
    unpacker_.on_packed_read({object_, ::getpid(), fd_.get(), array_, box}, actor_.self);
  }
  // A row of chunks, after which the next one is expected.
  void read_row(std::uint64_t row) {
    for (std::uint64_t column = 0; column < 4; ++column)
      read({{16 * row, 16 * column}, {row == 3 ? 12U : 16U, 16}});
    unpacker_.await_quiet();
  }
  std::uint64_t unpacked() const { return unpacker_.unpacked_of(object_, array_.token); }

  PackedArray array_{
      {7, 9}, {60, 64}, {16, 16}, 4, *arrays::FilterList::of(std::array{2U, 1U, 3U})};
  arrays::ChunkGrid grid_ = *array_.grid();
  std::vector<PackedChunk> table_;
  NodeMemory memory_;
  Actor actor_ = testing::make_actor(memory_);
  StoreFiles files_{memory_};
  Flusher flusher_{memory_, files_, memory_.owners().current(ClientSlot::kOfService),
                   FlushOptions(), nullptr};
  std::shared_mutex fetches_;
  GridShelf grids_{""};
  ChunkUnpacker unpacker_;
  UniqueFd fd_{testing::make_unnamed_file()};
  PosixBacking file_{fd_.get(), O_RDWR};
  ObjectIndex object_ = ObjectIndex::kNone;
};

TEST_F(ChunkUnpackerTest, ProgramsThatWaitForTheStoreComeFirst) {
  constexpr std::chrono::milliseconds kSurelyLessThanItWaits(10);
  keep_table();
  keep_chunk(0);
  std::atomic<std::uint32_t>& demands = memory_.events(1).demands;
  demands.store(1);
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t column = 0; column < 4; ++column) read({{0, 16 * column}, {16, 16}});
  std::this_thread::sleep_for(std::chrono::milliseconds(4));
  const std::uint64_t meanwhile = unpacked();
  const bool was_soon = std::chrono::steady_clock::now() - begin < kSurelyLessThanItWaits;
  demands.store(0);
  unpacker_.await_quiet();
  EXPECT_TRUE(meanwhile == 0 || !was_soon) << meanwhile;
  EXPECT_GT(unpacked(), 0U) << "later it goes on";
}

TEST_F(ChunkUnpackerTest, TheNextChunksAreThereBeforeTheyAreRead) {
  keep_table();
  keep_chunk(2);
  read_row(0);
  EXPECT_EQ(found(4), wanted(4));
  EXPECT_TRUE(found(0).empty()) << "it was read";
  EXPECT_TRUE(found(12).empty()) << "nobody is near it";
  EXPECT_NE(unpacked(), 0u);
  // Those at the edge are cut.
  read_row(1);
  read_row(2);
  EXPECT_EQ(found(12), wanted(12));
}

// The next time step, or another field: its chunks come from its first box on.
TEST_F(ChunkUnpackerTest, ADatasetOfTheSameShapeIsReadAlike) {
  keep_table();
  keep_chunk(2);
  read_row(0);
  array_.token = {8, 9};
  keep_table();
  keep_chunk(2);
  read({{0, 0}, {16, 16}});
  unpacker_.await_quiet();
  EXPECT_EQ(found(1), wanted(1));
}

TEST_F(ChunkUnpackerTest, NothingIsKeptBeforeAChunkWasCompared) {
  keep_table();
  read_row(0);
  EXPECT_TRUE(found(4).empty());
  EXPECT_EQ(unpacked(), 0u);
  keep_chunk(1);
  read_row(1);
  EXPECT_EQ(found(8), wanted(8));
}

TEST_F(ChunkUnpackerTest, ADatasetThatHdf5ReadsOtherwiseIsLeftToIt) {
  keep_table();
  Bytes other = wanted(2);
  other[100] ^= std::byte{1};
  keep(name_of(2), other);
  read_row(0);
  keep_chunk(1);
  read_row(1);
  EXPECT_TRUE(found(4).empty());
  EXPECT_TRUE(found(8).empty());
  EXPECT_EQ(unpacked(), 0u);
}

TEST_F(ChunkUnpackerTest, WithoutATableNothingIsDone) {
  keep_chunk(2);
  read_row(0);
  EXPECT_TRUE(found(4).empty());
}

TEST_F(ChunkUnpackerTest, ATableThatCannotBeIsNotUsed) {
  table_[15].offset = UINT64_MAX - 10;
  keep_table();
  keep_chunk(2);
  read_row(0);
  EXPECT_TRUE(found(4).empty());
}

TEST_F(ChunkUnpackerTest, ChunksThatAreNotPlainAreLeftToHdf5) {
  table_[4].skipped = 1;
  table_[5] = {};
  table_[6].offset += 1;
  keep_table();
  keep_chunk(2);
  read_row(0);
  // One reader has the next chunk made for it at each read.
  for (std::uint64_t column = 0; column < 3; ++column) {
    read({{16, 16 * column}, {16, 16}});
    unpacker_.await_quiet();
  }
  EXPECT_TRUE(found(4).empty()) << "it went through one filter less";
  EXPECT_TRUE(found(5).empty()) << "it was never written";
  EXPECT_TRUE(found(6).empty()) << "it is damaged";
  EXPECT_EQ(found(7), wanted(7));
}

TEST_F(ChunkUnpackerTest, NothingIsUnpackedWhileSomebodyMayWriteTheFile) {
  keep_table();
  keep_chunk(2);
  record().writers.store(1);
  read_row(0);
  record().writers.store(0);
  EXPECT_TRUE(found(4).empty());
}

TEST_F(ChunkUnpackerTest, NothingIsUnpackedAheadOfAFileOfWhichARuleHasNothingFetchedAhead) {
  keep_table();
  keep_chunk(2);
  for (const PrefetchHint hint : {PrefetchHint::kNone, PrefetchHint::kRandom}) {
    ObjectHandling handling;
    handling.prefetch = hint;
    record().set_handling(handling);
    read_row(0);
    EXPECT_TRUE(found(4).empty());
  }
  record().set_handling({});
  read_row(1);
  EXPECT_EQ(found(8), wanted(8));
}

TEST_F(ChunkUnpackerTest, WhatARuleNeverBuffersIsNotRead) {
  keep_table();
  keep_chunk(2);
  const PartStatement never{0, 0, PartProperty::kNeverBuffer, 1, 0};
  PartSet set;
  ASSERT_TRUE(set.add(memory_.rules().parts().add(never)));
  ObjectHandling handling;
  handling.parts = memory_.rules().parts().intern(set);
  record().set_handling(handling);
  read_row(0);
  EXPECT_TRUE(found(4).empty());
  record().set_handling({});
  read_row(1);
  EXPECT_EQ(found(8), wanted(8));
  EXPECT_EQ(unpacker_.unpacked_in_all(), unpacked());
}

// What may wait for its readers is less than 16 chunks.
class ChunkUnpackerOfLittleBudget : public ChunkUnpackerTest {
 protected:
  ChunkUnpackerOfLittleBudget() : ChunkUnpackerTest(testing::kMiB * 3 / 2, 1) {}
};

TEST_F(ChunkUnpackerOfLittleBudget, AsManyAreUnpackedAsThereIsRoomFor) {
  keep_table();
  keep_chunk(2);
  read_row(0);
  EXPECT_EQ(found(4), wanted(4));
}

TEST_F(ChunkUnpackerTest, AnotherVersionOfTheFileHasNothingOfThis) {
  keep_table();
  keep_chunk(2);
  read_row(0);
  ASSERT_EQ(found(4), wanted(4));
  memory_.objects().note_cut_write(object_);
  EXPECT_TRUE(found(4).empty());
  EXPECT_EQ(unpacked(), 0u);
  read_row(0);
  EXPECT_TRUE(found(4).empty()) << "its table is another one";
}

TEST_F(ChunkUnpackerTest, NothingIsKeptOfAFileThatHasJustChanged) {
  // However slow the machine is, this stays "just now".
  const timespec ahead{::time(nullptr) + 3600, 1};
  const timespec times[2] = {ahead, ahead};
  ASSERT_EQ(::futimens(fd_.get(), times), 0);
  open();
  keep_table();
  keep_chunk(2);
  read_row(0);
  EXPECT_TRUE(found(4).empty());
}

}  // namespace
}  // namespace cairn::node

#endif
