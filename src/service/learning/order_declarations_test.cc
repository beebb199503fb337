// SPDX-License-Identifier: Apache-2.0
#include "service/learning/order_declarations.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "policy/orders/testing/order_texts.h"
#include "service/learning/order_search.h"

namespace cairn::node {
namespace {

constexpr const char* kSaid = "numpy-permutation seed=3 items=50 epochs=1 item-bytes=64K";

class OrderDeclarationsTest : public ::testing::Test {
 protected:
  OrderDeclarationsTest() { std::ofstream(path_) << "*/packed " << kSaid << "\n"; }
  ~OrderDeclarationsTest() override { ::unlink(path_.c_str()); }

  std::string fingerprint() const {
    return std::to_string(DeclaredOrders::load(path_, {}).value().fingerprint());
  }
  static std::int64_t first_block(std::size_t at) {
    return testing::order_of(kSaid).order(0).value()[at];
  }
  OrderSearch::Outcome read(OrderSearch& search, std::int64_t block) {
    const auto path_of = [](const ToldAccess&) { return std::string("/data/packed"); };
    found_ = search.look(declarations_.orders(), ToldAccess(), BlockRun{block, 1},
                         OrderReader::kFetching, path_of);
    return found_.outcome;
  }

  const std::string path_ = "/var/tmp/cairn-declarations-" + std::to_string(::getpid());
  OrderDeclarations declarations_;
  OrderSearch::Found found_;
};

TEST_F(OrderDeclarationsTest, WhatIsDeclaredLaterJoinsWithTheNextBatch) {
  std::size_t announced = 0;
  declarations_.set_on_declared([&](DeclaredOrders& fresh) { announced += fresh.size(); });
  EXPECT_FALSE(declarations_.declare(path_, "12345").is_ok()) << "its author read something else";
  const auto count = declarations_.declare(path_, fingerprint());
  ASSERT_TRUE(count.is_ok()) << count.status().message();
  EXPECT_EQ(count.value(), 1U);
  EXPECT_EQ(announced, 1U);
  EXPECT_TRUE(declarations_.orders().is_empty());
  declarations_.on_accesses({});
  EXPECT_TRUE(declarations_.orders().has_order_of("/data/packed"));
}

TEST_F(OrderDeclarationsTest, AStreamFindsItsPlaceBehindAHeader) {
  ASSERT_TRUE(declarations_.load(path_).is_ok());
  OrderSearch search;
  EXPECT_FALSE(search.is_begun());
  EXPECT_EQ(read(search, 5000), OrderSearch::Outcome::kGoesOn);
  EXPECT_EQ(read(search, first_block(0)), OrderSearch::Outcome::kFound);
  ASSERT_NE(found_.order, nullptr);
  EXPECT_EQ(found_.order->size(), 50U);
  EXPECT_EQ(search.path(), "/data/packed");
  EXPECT_EQ(read(search, first_block(1)), OrderSearch::Outcome::kOver);
}

TEST_F(OrderDeclarationsTest, OnlyAStreamKnownFromItsOpenRefutesAnOrder) {
  ASSERT_TRUE(declarations_.load(path_).is_ok());
  for (const bool is_known : {false, true}) {
    OrderSearch search;
    if (is_known) search.note_open();
    for (unsigned at = 1; at < kFirstReads; ++at)
      EXPECT_EQ(read(search, 5000), OrderSearch::Outcome::kGoesOn);
    EXPECT_EQ(read(search, 5000), OrderSearch::Outcome::kNotFound);
    EXPECT_EQ(declarations_.orders().has_order_of("/data/packed"), !is_known);
  }
}

TEST_F(OrderDeclarationsTest, ASuccessorDeclaresTheSameAgain) {
  ASSERT_TRUE(declarations_.declare(path_, fingerprint()).is_ok());
  ASSERT_TRUE(declarations_.declare(path_, fingerprint()).is_ok());
  ASSERT_EQ(declarations_.snapshot().size(), 1u) << "the latest of each file";
  OrderDeclarations next;
  next.restore(declarations_.snapshot());
  next.declare_again();
  next.on_accesses({});
  EXPECT_TRUE(next.orders().has_order_of("/data/packed"));
  EXPECT_EQ(next.snapshot().size(), 1u) << "for the one after it";
}

TEST_F(OrderDeclarationsTest, ASuccessorLeavesOutWhatSaysSomethingElseByNow) {
  ASSERT_TRUE(declarations_.declare(path_, fingerprint()).is_ok());
  std::ofstream(path_, std::ios::app) << "*/other " << kSaid << "\n";
  OrderDeclarations next;
  next.restore(declarations_.snapshot());
  next.declare_again();
  next.on_accesses({});
  EXPECT_TRUE(next.orders().is_empty());
}

}  // namespace
}  // namespace cairn::node
