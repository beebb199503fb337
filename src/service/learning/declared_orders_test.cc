// SPDX-License-Identifier: Apache-2.0
#include "service/learning/declared_orders.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>
#include <random>
#include <set>

#include "policy/orders/testing/order_texts.h"

namespace cairn::node {
namespace {

class DeclaredOrdersTest : public ::testing::Test {
 protected:
  ~DeclaredOrdersTest() override {
    for (const std::string& path : written_) ::unlink(path.c_str());
  }

  std::string write(const std::string& text) {
    const std::string path = "/var/tmp/cairn-orders-" + std::to_string(::getpid()) + "-" +
                             std::to_string(written_.size());
    std::ofstream(path) << text;
    written_.push_back(path);
    return path;
  }
  DeclaredOrders load(const std::string& text) {
    auto orders = DeclaredOrders::load(
        write(text), [this](const std::string& complaint) { complaints_.push_back(complaint); });
    EXPECT_TRUE(orders.is_ok()) << orders.status().message();
    return orders ? std::move(orders.value()) : DeclaredOrders();
  }

  std::vector<std::string> written_;
  std::vector<std::string> complaints_;
};

TEST_F(DeclaredOrdersTest, SaysWhichLineIsWrong) {
  const auto fails = [this](const std::string& text, const std::string& said) {
    const std::string path = write(text);
    const auto orders = DeclaredOrders::load(path, {});
    ASSERT_FALSE(orders.is_ok()) << text;
    EXPECT_NE(orders.status().message().find(path), std::string::npos) << orders.status().message();
    EXPECT_NE(orders.status().message().find(said), std::string::npos) << orders.status().message();
  };
  fails("# a comment\n\n/data/x\n", ":3");
  fails("/data/x torch-random seed=1 items=10\n", ":1");
  fails("/data/x torch-random seed=1 items=ten item-bytes=64K\n", "items");
  fails("/data/x no-such-thing items=10\n", "no-such-thing");
  EXPECT_FALSE(DeclaredOrders::load("/nowhere/orders", {}).is_ok());
  EXPECT_TRUE(DeclaredOrders::load("", {}).is_ok());
}

TEST_F(DeclaredOrdersTest, AStreamIsToldWhatFollowsItsFirstRead) {
  DeclaredOrders orders =
      load("*/packed numpy-permutation seed=3 items=50 epochs=3 item-bytes=128K\n");
  EXPECT_TRUE(orders.has_order_of("/data/packed"));
  EXPECT_FALSE(orders.has_order_of("/data/other"));
  EpochOrder epochs =
      testing::order_of("numpy-permutation seed=3 items=50 epochs=3 item-bytes=128K");
  const std::vector<std::uint32_t> first = epochs.order(0).value();
  const std::vector<std::uint32_t> second = epochs.order(1).value();
  const DeclaredOrder told = orders.order_from("/data/packed", BlockRun{2 * first[0], 2});
  ASSERT_NE(told, nullptr);
  ASSERT_EQ(told->size(), 150U);
  EXPECT_EQ((*told)[1], (BlockRun{2 * static_cast<std::int64_t>(first[1]), 2}));
  // The file is opened anew for the second epoch.
  const DeclaredOrder next = orders.order_from("/data/packed", BlockRun{2 * second[0], 1});
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(next->size(), 100U);
  EXPECT_EQ((*next)[0].first, 2 * static_cast<std::int64_t>(second[0]));
}

TEST_F(DeclaredOrdersTest, WorkersReadEveryOtherBatch) {
  const std::string said =
      "numpy-permutation seed=3 items=50 epochs=2 item-bytes=128K workers=3 batch=4";
  DeclaredOrders orders = load("*/packed " + said + "\n");
  EpochOrder epochs = testing::order_of(said);
  for (std::uint32_t worker = 0; worker < 3; ++worker) {
    std::vector<BlockRun> expected;
    for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
      const std::vector<std::uint32_t> items = epochs.order(epoch).value();
      for (std::size_t at = 0; at < items.size(); ++at) {
        if (at / 4 % 3 == worker) expected.push_back(BlockRun{2 * std::int64_t{items[at]}, 2});
      }
    }
    for (const OrderReader reader : {OrderReader::kFetching, OrderReader::kReplacement}) {
      const DeclaredOrder told = orders.order_from("/data/packed", expected[0], reader);
      ASSERT_NE(told, nullptr) << worker;
      EXPECT_EQ(*told, expected) << worker;
    }
  }
}

TEST_F(DeclaredOrdersTest, WhatDoesNotMatchIsDroppedAndSaidOnce) {
  DeclaredOrders orders =
      load("*/packed numpy-permutation seed=3 items=1000 epochs=1 item-bytes=64K\n");
  EXPECT_EQ(orders.order_from("/data/packed", BlockRun{5000, 1}), nullptr);
  orders.refute("/data/packed");
  orders.refute("/data/packed");
  EXPECT_EQ(complaints_.size(), 1U);
  EXPECT_NE(complaints_[0].find(":1"), std::string::npos);
  EXPECT_NE(complaints_[0].find("workers="), std::string::npos);
  EXPECT_FALSE(orders.has_order_of("/data/packed"));
}

TEST_F(DeclaredOrdersTest, OfManyFilesThoseAreNamedThatComeNext) {
  std::string list;
  for (int item = 0; item < 20; ++item) list += "/data/" + std::to_string(item) + "\n";
  const std::string files = write(list);
  DeclaredOrders orders =
      load("/data/* numpy-permutation seed=9 items=20 epochs=2 item-files=" + files + "\n");
  EpochOrder epochs =
      testing::order_of("numpy-permutation seed=9 items=20 epochs=2 item-files=" + files);
  for (unsigned epoch = 0; epoch < 2; ++epoch) {
    const std::vector<std::uint32_t> items = epochs.order(epoch).value();
    for (std::size_t at = 0; at + 3 < items.size(); ++at) {
      const auto next = orders.files_after("/data/" + std::to_string(items[at]), 3);
      ASSERT_EQ(next.size(), 3U) << epoch << " " << at;
      for (std::size_t ahead = 0; ahead < 3; ++ahead)
        EXPECT_EQ(next[ahead], "/data/" + std::to_string(items[at + 1 + ahead]));
    }
  }
  EXPECT_TRUE(orders.files_after("/data/none", 3).empty());
}

TEST_F(DeclaredOrdersTest, WhatIsDeclaredAnewReplacesWhatWasForThePattern) {
  const std::string fields = " items=50 epochs=3 item-bytes=64K\n";
  const auto first_of = [&](unsigned seed, std::uint32_t epoch) {
    return testing::order_of("numpy-permutation seed=" + std::to_string(seed) + fields)
        .order(epoch)
        .value()[0];
  };
  const auto is_known = [](DeclaredOrders& orders, std::uint32_t first) {
    return orders.order_from("/data/packed", BlockRun{first, 1}) != nullptr;
  };
  DeclaredOrders orders = load("*/other numpy-permutation seed=1" + fields +
                               "*/packed numpy-permutation seed=3" + fields);
  EXPECT_TRUE(is_known(orders, first_of(3, 0)));
  orders.append(load("*/packed numpy-permutation seed=3" + fields));
  EXPECT_EQ(orders.size(), 2U) << "it says nothing new";
  EXPECT_TRUE(is_known(orders, first_of(3, 1))) << "and epochs go on";
  orders.append(load("*/packed numpy-permutation seed=4" + fields +
                     "*/packed numpy-permutation seed=5" + fields));
  EXPECT_EQ(orders.refuted(), 1U);
  EXPECT_TRUE(is_known(orders, first_of(4, 0)));
  EXPECT_TRUE(is_known(orders, first_of(5, 0))) << "both of one file of declarations hold";
  EXPECT_TRUE(orders.has_order_of("/data/other"));
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(DeclaredOrdersTest, ListsThatAreWrittenAnewAreReadAnew) {
  const std::string list = write("/data/a\n/data/b\n/data/c\n");
  DeclaredOrders orders = load("* list " + list + " lines=files\n");
  EXPECT_EQ(orders.files_after("/data/a", 2), (std::vector<std::string>{"/data/b", "/data/c"}));
  const std::uint64_t before = orders.fingerprint();
  std::ofstream(list) << "/data/x\n/data/y\n/data/z\n";
  DeclaredOrders other = load("* list " + list + " lines=files\n");
  EXPECT_NE(other.fingerprint(), before);
  orders.append(std::move(other));
  EXPECT_EQ(orders.files_after("/data/x", 2), (std::vector<std::string>{"/data/y", "/data/z"}));
  EXPECT_TRUE(orders.files_after("/data/a", 2).empty());
}

TEST_F(DeclaredOrdersTest, AListLiesBesideTheFileThatNamesIt) {
  const std::string list = write("/data/a\n/data/b\n");
  DeclaredOrders orders = load("* list " + list.substr(list.rfind('/') + 1) + " lines=files\n");
  EXPECT_EQ(orders.files_after("/data/a", 2).size(), 1U);
  EXPECT_EQ(orders.sources().back(), list);
}

class ManyFilesTest : public DeclaredOrdersTest {
 protected:
  static constexpr std::size_t kFiles = 1000;
  ManyFilesTest() {
    std::string list;
    for (std::size_t file = 0; file < kFiles; ++file) list += name_of(file) + "\n";
    orders_ = load("* list " + write(list) + " lines=files\n");
  }
  static std::string name_of(std::size_t file) { return "/data/" + std::to_string(file); }

  DeclaredOrders orders_;
};

TEST_F(ManyFilesTest, TheSameJobOnceMoreBeginsAgain) {
  for (std::size_t file = 0; file < kFiles; ++file) orders_.files_after(name_of(file), 1);
  std::size_t known = 0;
  for (std::size_t file = 0; file < kFiles / 2; ++file)
    known += orders_.files_after(name_of(file), 1).size();
  EXPECT_GE(known, kFiles / 2 - 10);
  for (std::size_t file = 0; file < kFiles / 2; ++file)
    known += orders_.files_after(name_of(file), 1).size();
  EXPECT_GE(known, kFiles - 20) << "nor does it matter how far that one has got";
  EXPECT_TRUE(complaints_.empty());
}

// Several epochs of a shuffle, opened by others than one process that opens each file once.
class SharedFilesTest : public DeclaredOrdersTest {
 protected:
  static constexpr std::uint32_t kEpochs = 4;
  void SetUp() override {
    for (std::size_t file = 0; file < files_; ++file) list_ += name_of(file) + "\n";
    list_ = write(list_);
  }
  static std::string name_of(std::size_t file) { return "/data/" + std::to_string(file); }
  std::string line(const std::string& kind) const {
    return kind + " seed=7 items=" + std::to_string(files_) + " epochs=" + std::to_string(kEpochs) +
           " item-files=" + list_;
  }
  // Returns: which part of the opens was of a file that was named before, in the same epoch.
  double open(DeclaredOrders& orders, const std::vector<std::vector<std::uint32_t>>& epochs) {
    std::size_t opens = 0;
    std::size_t known = 0;
    for (const std::vector<std::uint32_t>& epoch : epochs) {
      std::set<std::string> wanted;
      for (const std::uint32_t item : epoch) {
        known += wanted.contains(name_of(item)) ? 1 : 0;
        ++opens;
        for (std::string& next : orders.files_after(name_of(item), 32))
          wanted.insert(std::move(next));
      }
    }
    return static_cast<double>(known) / static_cast<double>(opens);
  }

  std::size_t files_ = 400;
  std::string list_;
};

TEST_F(SharedFilesTest, ByWorkersInBatches) {
  for (const std::size_t batch : {8, 32}) {
    DeclaredOrders orders = load("* " + line("torch-random") + "\n");
    EpochOrder order = testing::order_of(line("torch-random"));
    std::mt19937 draw(5);
    std::vector<std::vector<std::uint32_t>> epochs;
    for (std::uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
      const auto items = order.order(epoch).value();
      // Four workers, each in its batch, one or the other ahead.
      epochs.emplace_back();
      for (std::size_t first = 0; first < items.size(); first += 4 * batch) {
        std::array<std::size_t, 4> done{};
        for (std::size_t left = std::min(4 * batch, items.size() - first); left > 0;) {
          const std::size_t worker = draw() % 4;
          const std::size_t at = first + worker * batch + done[worker];
          if (done[worker] == batch || at >= items.size()) continue;
          epochs.back().push_back(items[at]);
          ++done[worker];
          --left;
        }
      }
    }
    EXPECT_GE(open(orders, epochs), 0.85) << batch;
    EXPECT_TRUE(complaints_.empty()) << complaints_[0];
  }
}

TEST_F(SharedFilesTest, EachTwice) {
  DeclaredOrders orders = load("* " + line("torch-random") + "\n");
  EpochOrder order = testing::order_of(line("torch-random"));
  std::vector<std::vector<std::uint32_t>> epochs(kEpochs);
  for (std::uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
    const auto items = order.order(epoch).value();
    for (const std::uint32_t item : items) epochs[epoch].insert(epochs[epoch].end(), {item, item});
  }
  EXPECT_GE(open(orders, epochs), 0.95);
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(SharedFilesTest, ByTwoRanksOfADeclarationEach) {
  const std::string each = "torch-distributed replicas=2 rank=";
  DeclaredOrders orders = load("* " + line(each + "0") + "\n* " + line(each + "1") + "\n");
  EpochOrder first = testing::order_of(line(each + "0"));
  EpochOrder second = testing::order_of(line(each + "1"));
  std::vector<std::vector<std::uint32_t>> epochs(kEpochs);
  for (std::uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
    const auto one = first.order(epoch).value();
    const auto other = second.order(epoch).value();
    for (std::size_t at = 0; at < one.size(); ++at)
      epochs[epoch].insert(epochs[epoch].end(), {one[at], other[at]});
  }
  EXPECT_GE(open(orders, epochs), 0.95);
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(SharedFilesTest, EpochsMayEndEarly) {
  files_ = 2000;
  list_.clear();
  SetUp();
  DeclaredOrders orders = load("* " + line("torch-random") + "\n");
  EpochOrder order = testing::order_of(line("torch-random"));
  std::vector<std::vector<std::uint32_t>> epochs;
  for (std::uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
    const auto items = order.order(epoch).value();
    epochs.emplace_back(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(files_ / 2));
  }
  EXPECT_GE(open(orders, epochs), 0.85);
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(SharedFilesTest, AnotherSeedIsNoticed) {
  DeclaredOrders orders = load("* " + line("torch-random") + "\n");
  std::vector<std::uint32_t> items(files_);
  std::iota(items.begin(), items.end(), 0U);
  std::mt19937 draw(11);
  std::shuffle(items.begin(), items.end(), draw);
  open(orders, {items});
  EXPECT_EQ(complaints_.size(), 1U);
}

TEST_F(ManyFilesTest, WhoOnlyBeginsByItIsRefutedAllTheSame) {
  for (std::size_t file = 0; file < kFiles; ++file) orders_.files_after(name_of(file), 1);
  for (std::size_t open = 0; open < kFiles; ++open)
    orders_.files_after(name_of(open * 617 % kFiles), 1);
  EXPECT_EQ(complaints_.size(), 1U);
}

}  // namespace
}  // namespace cairn::node
