// SPDX-License-Identifier: Apache-2.0
// Orders that a file says, and what is refused.
#include "policy/orders/epoch_order.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "policy/orders/testing/order_texts.h"

namespace cairn {
namespace {

using testing::order_of;

// A list that is only in memory but has a path.
class ListFile {
 public:
  explicit ListFile(const std::string& content) : fd_(::memfd_create("list", MFD_CLOEXEC)) {
    EXPECT_EQ(::write(fd_, content.data(), content.size()), static_cast<ssize_t>(content.size()));
  }
  ~ListFile() { ::close(fd_); }
  ListFile(const ListFile&) = delete;
  ListFile& operator=(const ListFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

void expect_no_order(const std::string& text, const std::string& part) {
  testing::expect_refusal(testing::try_order(text), text, part);
}

using Numbers = std::vector<std::uint32_t>;

TEST(EpochOrder, AListIsTheOrderOfEveryEpoch) {
  const ListFile list("# the warm-up\n3\n0\r\n\n3\n7");
  EpochOrder order = order_of("list " + list.path() + " epochs=2");
  EXPECT_EQ(order.items(), 8U);
  EXPECT_EQ(order.items_per_epoch(), 4U);
  EXPECT_EQ(*order.order(0), (Numbers{3, 0, 3, 7}));
  EXPECT_EQ(*order.order(1), (Numbers{3, 0, 3, 7}));
  EXPECT_TRUE(order.item_files().empty());
}

TEST(EpochOrder, AListOfFilesNumbersThemAsTheyAppear) {
  const ListFile list("/data/b\n/data/a\n/data/b\n");
  EpochOrder order = order_of("list " + list.path() + " lines=files");
  EXPECT_EQ(*order.order(0), (Numbers{0, 1, 0}));
  EXPECT_EQ(order.item_files(), (std::vector<std::string>{"/data/b", "/data/a"}));
  EXPECT_EQ(order.items(), 2U);
  expect_no_order("list " + list.path() + " lines=files items=3", "names 2 different files");
}

TEST(EpochOrder, ItemsMayBeFilesOfAnotherList) {
  const ListFile files("/data/b\n/data/a\n/data/c\n");
  EpochOrder order = order_of("torch-random seed=1 items=3 item-files=" + files.path());
  EXPECT_EQ(order.item_files()[2], "/data/c");
  expect_no_order("torch-random seed=1 items=4 item-files=" + files.path(),
                  "names 3 files for items=4");
  const ListFile numbers("2\n1\n");
  EpochOrder listed = order_of("list " + numbers.path() + " item-files=" + files.path());
  EXPECT_EQ(listed.items(), 3U);
  EXPECT_EQ(*listed.order(0), (Numbers{2, 1}));
  const ListFile too_high("2\n3\n");
  expect_no_order("list " + too_high.path() + " item-files=" + files.path(), "has item 3");
}

TEST(EpochOrder, AWrongLineIsNamed) {
  const ListFile words("0\nseven\n");
  expect_no_order("list " + words.path(), words.path() + ":2: \"seven\" is not the number");
  const ListFile high("0\n1\n5\n");
  expect_no_order("list " + high.path() + " items=5",
                  ":3: \"5\" is not the number of an item, 0 to 4");
  const ListFile empty("# nothing\n");
  expect_no_order("list " + empty.path(), "the list is empty");
  expect_no_order("list " + empty.path() + " lines=files", "the list is empty");
  const ListFile binary(std::string("1\n2\0", 4));
  expect_no_order("list " + binary.path(), ":2: this is no text");
  const ListFile endless(std::string(5000, 'x'));
  expect_no_order("list " + endless.path() + " lines=files", ":1: the line is too long");
  expect_no_order("list /does/not/exist", "cannot open /does/not/exist");
  expect_no_order("list /", "no regular file");
  const ListFile far("2147483647\n");
  expect_no_order("list " + far.path() + " item-bytes=8G", "2^63 bytes");
}

TEST(EpochOrder, AnEpochThatWasNotDeclaredIsRefused) {
  EpochOrder order = order_of("numpy-generator seed=1 items=3 epochs=2");
  EXPECT_TRUE(order.order(1));
  const auto beyond = order.order(2);
  EXPECT_EQ(beyond.status().code(), StatusCode::kInvalid);
  EXPECT_NE(beyond.status().message().find("no epoch 2"), std::string::npos);
}

TEST(EpochOrder, ReplicasTogetherReadEverything) {
  for (const char* rest : {"", " drop-last"}) {
    std::vector<unsigned> times(103);
    for (int rank = 0; rank < 8; ++rank) {
      EpochOrder order = order_of(
          "torch-distributed seed=5 items=103 replicas=8 rank=" + std::to_string(rank) + rest);
      const auto items = order.order(0);
      ASSERT_TRUE(items);
      for (const std::uint32_t item : *items) ++times[item];
    }
    unsigned read = 0;
    for (const unsigned count : times) read += count;
    EXPECT_EQ(read, *rest == '\0' ? 104U : 96U);
  }
}

TEST(EpochOrder, FewerItemsThanReplicasMayBeNone) {
  EpochOrder order = order_of("torch-distributed items=3 replicas=8 rank=0 drop-last");
  EXPECT_EQ(order.items_per_epoch(), 0U);
  EXPECT_TRUE(order.order(0)->empty());
}

}  // namespace
}  // namespace cairn
