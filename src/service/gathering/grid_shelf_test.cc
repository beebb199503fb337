// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/grid_shelf.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace cairn::node {
namespace {

using arrays::ArrayLooks;
using arrays::ChunkGrid;
using arrays::ChunkShape;

const ArrayLooks kField{{64, 64}, 4, {}};
const ArrayLooks kMask{{32, 32}, 1, {8, 8}};

ChunkGrid rows_of(const ArrayLooks& looks) {
  return *ChunkGrid::of(looks.shape, ChunkShape::plain({1, looks.shape[1]}));
}

class GridShelfTest : public ::testing::Test {
 protected:
  GridShelfTest() { std::filesystem::remove_all(directory_); }
  ~GridShelfTest() override { std::filesystem::remove_all(directory_); }

  std::string file() const { return directory_ + "/" + std::string(GridShelf::kFileName); }

  // What a node after those before finds of such an array.
  std::optional<ChunkGrid> found(const ArrayLooks& looks) const {
    GridShelf next(directory_);
    next.take_out();
    return next.find(looks);
  }

  const std::string directory_ =
      ::testing::TempDir() + "grid-shelf-" + std::to_string(::getpid()) + "/made";
};

TEST_F(GridShelfTest, TheNextNodeFindsTheGrids) {
  EXPECT_FALSE(found(kField));
  EXPECT_FALSE(std::filesystem::exists(directory_));
  GridShelf first(directory_);
  first.note(kField, rows_of(kField));
  first.put_away();
  EXPECT_EQ(found(kField)->shape(), rows_of(kField).shape());
}

TEST_F(GridShelfTest, ANodePutsBackOnlyWhatItHasNotedItself) {
  GridShelf first(directory_);
  first.note(kField, rows_of(kField));
  first.put_away();
  GridShelf one(directory_);
  GridShelf other(directory_);
  one.take_out();
  other.take_out();
  const ChunkGrid columns = *ChunkGrid::of(kField.shape, ChunkShape::plain({64, 1}));
  other.note(kField, columns);
  other.put_away();
  one.note(kMask, rows_of(kMask));
  one.put_away();
  EXPECT_EQ(found(kField)->shape(), columns.shape());
  EXPECT_TRUE(found(kMask));
}

TEST_F(GridShelfTest, ADamagedFileIsBegunAnew) {
  std::filesystem::create_directories(directory_);
  std::ofstream(file()) << "no grids";
  GridShelf shelf(directory_);
  shelf.take_out();
  EXPECT_FALSE(shelf.find(kField));
  shelf.note(kField, rows_of(kField));
  shelf.put_away();
  EXPECT_TRUE(found(kField));
}

TEST_F(GridShelfTest, AFileOfAnotherVersionStays) {
  std::filesystem::create_directories(directory_);
  cairn::KeptKind later = arrays::KnownGrids::kKind;
  ++later.version;
  const std::string sealed = cairn::seal(later, "later grids");
  std::ofstream(file(), std::ios::binary) << sealed;
  std::filesystem::permissions(file(), std::filesystem::perms(0600));
  GridShelf shelf(directory_);
  shelf.note(kField, rows_of(kField));
  shelf.put_away();
  std::ifstream kept(file(), std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), sealed);
}

TEST_F(GridShelfTest, WithoutADirectoryThisNodeAloneKnows) {
  GridShelf shelf("");
  shelf.note(kField, rows_of(kField));
  shelf.put_away();
  EXPECT_TRUE(shelf.find(kField));
}

}  // namespace
}  // namespace cairn::node
