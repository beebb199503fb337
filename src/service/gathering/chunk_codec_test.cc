// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/chunk_codec.h"

#include <gtest/gtest.h>

#ifdef CAIRN_HAVE_LIBDEFLATE

#include <array>
#include <cstdlib>
#include <random>
#include <vector>

#include "service/gathering/testing/packed_bytes.h"

namespace cairn::node {
namespace {

using arrays::FilterList;
using arrays::PackedArray;
using testing::Bytes;

using Numbers = std::vector<std::uint32_t>;
const std::vector<Numbers> kPipelines = {{1},    {2},       {3},       {2, 1},    {1, 3},
                                         {2, 3}, {2, 1, 3}, {3, 2, 1}, {2, 3, 1}, {3, 1}};

// A chunk of 16 x 24 cells.
PackedArray array_of(const Numbers& filters, std::size_t cell_bytes) {
  return {{1, 0}, {64, 64}, {16, 24}, cell_bytes, *FilterList::of(filters)};
}

Bytes cells_of(const PackedArray& array) {
  std::mt19937 random(7);
  Bytes bytes(array.chunk_bytes());
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 5);
  return bytes;
}

bool unpacks_to(const PackedArray& array, const Bytes& packed, const Bytes& wanted) {
  ChunkCodec codec;
  Bytes cells(array.chunk_bytes());
  return codec.unpack(array, packed, cells) && cells == wanted;
}

TEST(ChunkCodec, UndoesEachRowOfFilters) {
  for (const Numbers& filters : kPipelines) {
    for (const std::size_t cell_bytes : {1U, 2U, 3U, 4U, 8U}) {
      const PackedArray array = array_of(filters, cell_bytes);
      const Bytes cells = cells_of(array);
      EXPECT_TRUE(unpacks_to(array, testing::packed(array, cells), cells))
          << filters.front() << " and " << filters.size() - 1 << " more, " << cell_bytes;
    }
  }
}

// HDF5 2.0.0 has made them by way of h5py: 2 x 3 cells "<u2" of 0, 257, 514, ... with shuffle, gzip
// of level 4 and fletcher32.
TEST(ChunkCodec, UnpacksWhatHdf5HasPacked) {
  const std::vector<unsigned> made = {0x78, 0x5e, 0x63, 0x60, 0x64, 0x62, 0x66, 0x61, 0x65, 0x00,
                                      0x93, 0x00, 0x00, 0xac, 0x00, 0x1f, 0x4e, 0x9f, 0x46, 0x23};
  Bytes packed;
  for (const unsigned byte : made) packed.push_back(static_cast<std::byte>(byte));
  const PackedArray array{{1, 0}, {2, 3}, {2, 3}, 2, *FilterList::of(Numbers{2, 1, 3})};
  Bytes cells;
  for (unsigned cell = 0; cell < 6; ++cell) cells.insert(cells.end(), 2, std::byte(cell));
  EXPECT_TRUE(unpacks_to(array, packed, cells));
}

TEST(ChunkCodec, RefusesWhatIsShorterOrLonger) {
  for (const Numbers& filters : kPipelines) {
    const PackedArray array = array_of(filters, 4);
    const Bytes packed = testing::packed(array, cells_of(array));
    ChunkCodec codec;
    Bytes cells(array.chunk_bytes());
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{3}, packed.size() / 2, packed.size() - 1}) {
      EXPECT_FALSE(codec.unpack(array, std::span(packed).first(size), cells)) << size;
    }
    PackedArray other = array;
    other.chunk[0] = 17;
    Bytes more(other.chunk_bytes());
    EXPECT_FALSE(codec.unpack(other, packed, more)) << "one row is missing";
    other.chunk[0] = 15;
    Bytes fewer(other.chunk_bytes());
    EXPECT_FALSE(codec.unpack(other, packed, fewer)) << "a row too many";
    EXPECT_TRUE(codec.unpack(array, packed, cells)) << "what failed has left nothing behind";
  }
}

TEST(ChunkCodec, ADamagedByteIsSeenWhereThereIsAChecksum) {
  for (const Numbers& filters : {Numbers{3}, Numbers{1}, Numbers{2, 1, 3}, Numbers{3, 1}}) {
    const PackedArray array = array_of(filters, 4);
    const Bytes cells = cells_of(array);
    const Bytes packed = testing::packed(array, cells);
    ChunkCodec codec;
    Bytes found(cells.size());
    for (std::size_t at = 0; at < packed.size(); at += 7) {
      Bytes damaged = packed;
      damaged[at] ^= std::byte{0x10};
      // Some bytes of a header of zlib say nothing of the content.
      EXPECT_TRUE(!codec.unpack(array, damaged, found) || found == cells) << at;
    }
  }
}

TEST(ChunkCodec, RandomBytesDoNoHarm) {
  std::mt19937 random(11);
  ChunkCodec codec;
  for (int round = 0; round < 3000; ++round) {
    const PackedArray array = array_of(kPipelines[round % kPipelines.size()], 1 + random() % 9);
    Bytes packed = testing::packed(array, cells_of(array));
    for (unsigned damage = 0; damage <= random() % 4; ++damage)
      packed[random() % packed.size()] = static_cast<std::byte>(random());
    packed.resize(random() % (packed.size() + 10));
    Bytes cells(array.chunk_bytes());
    (void)codec.unpack(array, packed, cells);
  }
}

}  // namespace
}  // namespace cairn::node

#endif
