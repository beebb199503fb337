// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/array_book.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::node {
namespace {

using arrays::LeftReason;

constexpr std::size_t kConversion = static_cast<std::size_t>(LeftReason::kConversion);

ObjectKey file(std::uint64_t inode) { return file_key(7, inode, 1); }

arrays::DatasetNews news(const std::string& name, std::uint64_t served, std::uint64_t left) {
  arrays::DatasetNews told;
  told.name = name;
  told.token = {name.size(), 0};
  told.shape = {16, 16};
  told.served_reads = served;
  told.served_bytes = 100 * served;
  told.left_reads[kConversion] = left;
  return told;
}

TEST(ArrayBook, ReadsOfADatasetAddUpByRun) {
  ArrayBook book;
  book.note(1, file(3), news("/x", 2, 1));
  book.note(1, file(3), news("/x", 3, 0));
  book.note(2, file(3), news("/x", 10, 0));
  book.note(1, file(4), news("/x", 1, 0));
  book.note(1, file(3), news("/a/y", 1, 0));
  const auto of_run = book.of_run(1);
  ASSERT_EQ(of_run.size(), 3u);
  const auto of_file = book.of_file(StoreId{7}, 3);
  ASSERT_EQ(of_file.size(), 2u);
  EXPECT_EQ(of_file[0].total.name, "/a/y");
  EXPECT_EQ(of_file[1].total.served_reads, 15u);
  EXPECT_EQ(of_file[1].total.served_bytes, 1500u);
  EXPECT_EQ(of_file[1].total.left_reads[kConversion], 1u);
  EXPECT_TRUE(book.of_file(StoreId{8}, 3).empty());
}

TEST(ArrayBook, ADatasetIsAsItWasLastTold) {
  ArrayBook book;
  book.note(1, file(3), news("/x", 1, 0));
  arrays::DatasetNews grown = news("/x", 1, 0);
  grown.shape = {32, 16};
  book.note(1, file(3), grown);
  const auto found = book.of_file(StoreId{7}, 3);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].total.shape, (arrays::Coordinates{32, 16}));
}

TEST(ArrayBook, WhatARunHasReadIsTheNodesAfterIt) {
  ArrayBook book;
  for (const std::uint32_t run : {1U, 2U}) {
    book.note(run, file(3), news("/x", 1, 2));
    book.end_run(run);
    EXPECT_TRUE(book.of_run(run).empty());
  }
  const auto found = book.of_file(StoreId{7}, 3);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].total.served_reads, 2u);
  EXPECT_EQ(found[0].total.left_reads[kConversion], 4u);
}

TEST(ArrayBook, TheOneThatHasRestedLongestIsForgotten) {
  ArrayBook book;
  book.note(1, file(1), news("/first", 1, 0));
  book.note(1, file(2), news("/second", 1, 0));
  book.note(1, file(1), news("/first", 1, 0));
  for (std::uint64_t inode = 3; inode < 1 + ArrayBook::kDatasetsMax; ++inode)
    book.note(1, file(inode), news("/x", 1, 0));
  EXPECT_EQ(book.of_run(1).size(), ArrayBook::kDatasetsMax);
  book.note(1, file(5000), news("/x", 1, 0));
  EXPECT_TRUE(book.of_file(StoreId{7}, 2).empty());
  EXPECT_EQ(book.of_file(StoreId{7}, 1).size(), 1u);
}

TEST(ArrayBook, AFileHasItsName) {
  ArrayBook book;
  book.note(1, file(3), news("/x", 1, 0));
  book.name_file(file(3), "/data/a.h5");
  EXPECT_EQ(book.of_run(1).front().path, "/data/a.h5");
  EXPECT_EQ(book.path_of(file(3)), "/data/a.h5");
  EXPECT_EQ(book.path_of(file(4)), "");
}

// A process that has ended says no paths any more.
TEST(ArrayBook, AFileIsNamedByTheFirstWhoCan) {
  ArrayBook book;
  EXPECT_TRUE(book.note(1, file(3), news("/x", 1, 0)));
  book.name_file(file(3), "");
  EXPECT_TRUE(book.note(1, file(3), news("/x", 1, 0)));
  book.name_file(file(3), "/data/a.h5");
  EXPECT_FALSE(book.note(1, file(3), news("/x", 1, 0)));
  EXPECT_TRUE(book.note(2, file(3), news("/x", 1, 0))) << "the entry of another run";
  book.name_file(file(3), "");
  EXPECT_EQ(book.of_run(1).front().path, "/data/a.h5");
}

// The node hears of the file's other datasets after its process has gone.
TEST(ArrayBook, ADatasetOfANamedFileHasItsName) {
  ArrayBook book;
  book.note(1, file(3), news("/x", 1, 0));
  book.name_file(file(3), "/data/a.h5");
  EXPECT_TRUE(book.note(1, file(3), news("/y", 1, 0))) << "the file may have another name by now";
  book.name_file(file(3), "");
  book.note(1, file(4), news("/y", 1, 0));
  for (const ArrayBook::Entry& entry : book.of_run(1))
    EXPECT_EQ(entry.path, entry.file == file(3) ? "/data/a.h5" : "") << entry.total.name;
  EXPECT_TRUE(book.note(1, file(3), news("/y", 1, 0)));
  book.name_file(file(3), "/data/b.h5");
  EXPECT_FALSE(book.note(1, file(3), news("/y", 1, 0)));
  EXPECT_EQ(book.path_of(file(3)), "/data/b.h5");
}

TEST(ArrayBook, ARunThatEndsLeavesItsPaths) {
  ArrayBook book;
  book.note(1, file(3), news("/x", 1, 0));
  book.end_run(1);
  book.note(2, file(3), news("/x", 1, 0));
  book.name_file(file(3), "/data/a.h5");
  book.end_run(2);
  EXPECT_EQ(book.of_run(0).front().path, "/data/a.h5");
}

}  // namespace
}  // namespace cairn::node
