// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/grid_shelf.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
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

  const std::string directory_ =
      ::testing::TempDir() + "grid-shelf-" + std::to_string(::getpid()) + "/made";
};

TEST_F(GridShelfTest, TheNextNodeFindsTheGrids) {
  GridShelf(directory_).find(kField);
  EXPECT_FALSE(std::filesystem::exists(directory_));
  GridShelf first(directory_);
  first.note(kField, rows_of(kField));
  first.put_away();
  EXPECT_EQ(GridShelf(directory_).find(kField)->shape(), rows_of(kField).shape());
}

TEST_F(GridShelfTest, NodesSideBySideKeepEachOthersGrids) {
  GridShelf one(directory_);
  GridShelf other(directory_);
  one.note(kField, rows_of(kField));
  other.note(kMask, rows_of(kMask));
  one.put_away();
  other.put_away();
  GridShelf next(directory_);
  EXPECT_TRUE(next.find(kField));
  EXPECT_TRUE(next.find(kMask));
}

TEST_F(GridShelfTest, ADamagedFileIsBegunAnew) {
  std::filesystem::create_directories(directory_);
  std::ofstream(file()) << "no grids";
  GridShelf shelf(directory_);
  EXPECT_FALSE(shelf.find(kField));
  shelf.note(kField, rows_of(kField));
  shelf.put_away();
  EXPECT_TRUE(GridShelf(directory_).find(kField));
}

TEST_F(GridShelfTest, WithoutADirectoryThisNodeAloneKnows) {
  GridShelf shelf("");
  shelf.note(kField, rows_of(kField));
  shelf.put_away();
  EXPECT_TRUE(shelf.find(kField));
}

}  // namespace
}  // namespace cairn::node
