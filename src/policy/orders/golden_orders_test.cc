// SPDX-License-Identifier: Apache-2.0
// The orders against those that the libraries themselves made: PyTorch 2.15.0 and NumPy 2.4.6.
//
// PyTorch 1.13.0 and NumPy 1.24.2 made the same ones.
//
// How each was made is what the declaration says: RandomSampler and DataLoader of torch.utils.data
// over range(items) in small batches, DistributedSampler with set_epoch(epoch), and
// permutation(items) or shuffle() of numpy. Long orders are compared by their checksum.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "policy/orders/testing/order_texts.h"

namespace cairn {
namespace {

using Items = std::vector<std::uint32_t>;

// FNV-1a of the items as little-endian numbers of 32 bits.
std::uint64_t checksum_of(const Items& items) {
  std::uint64_t sum = 0xcbf29ce484222325ULL;
  for (const std::uint32_t item : items) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      sum = (sum ^ (item >> shift & 0xff)) * 0x100000001b3ULL;
    }
  }
  return sum;
}

struct ShortOrder {
  const char* declaration;
  std::vector<Items> epochs;
};

struct LongOrder {
  const char* declaration;
  std::uint32_t epoch;
  std::size_t count;
  std::uint64_t checksum;
};

const ShortOrder kShortOrders[] = {
    {"torch-random seed=42 items=10 epochs=3",
     {{8, 0, 9, 1, 4, 5, 6, 3, 2, 7},
      {4, 6, 9, 3, 7, 5, 2, 0, 1, 8},
      {6, 2, 1, 0, 3, 8, 5, 9, 4, 7}}},
    {"torch-random seed=42 items=10 epochs=3 loader=first-epoch",
     {{8, 0, 9, 1, 4, 5, 6, 3, 2, 7},
      {4, 3, 2, 6, 7, 5, 0, 8, 1, 9},
      {4, 6, 9, 3, 7, 5, 2, 0, 1, 8}}},
    {"torch-random seed=42 items=10 epochs=3 loader=none",
     {{4, 2, 8, 9, 1, 7, 0, 3, 5, 6},
      {8, 0, 9, 1, 4, 5, 6, 3, 2, 7},
      {4, 3, 2, 6, 7, 5, 0, 8, 1, 9}}},
    {"torch-random seed=42 items=10 epochs=3 generator=own",
     {{6, 5, 4, 0, 8, 9, 2, 1, 3, 7},
      {3, 6, 5, 8, 9, 4, 2, 0, 7, 1},
      {7, 4, 5, 0, 9, 1, 3, 2, 8, 6}}},
    {"torch-random seed=42 items=10 epochs=3 generator=own loader=first-epoch",
     {{6, 5, 4, 0, 8, 9, 2, 1, 3, 7},
      {9, 0, 3, 6, 1, 8, 7, 2, 4, 5},
      {2, 4, 1, 0, 5, 9, 3, 6, 7, 8}}},
    {"torch-random seed=42 items=10 epochs=3 generator=own loader=none",
     {{2, 6, 1, 8, 4, 5, 0, 9, 3, 7},
      {7, 5, 0, 3, 1, 6, 9, 8, 4, 2},
      {9, 6, 2, 4, 1, 7, 5, 3, 0, 8}}},
    {"torch-random seed=42 items=10 epochs=2 drawn=7",
     {{1, 8, 3, 4, 2, 6, 0, 5, 7, 9}, {1, 4, 9, 8, 7, 6, 2, 5, 0, 3}}},
    {"torch-random seed=42 items=10 epochs=2 drawn=7 generator=own",
     {{3, 5, 8, 9, 4, 6, 1, 0, 7, 2}, {9, 4, 2, 3, 5, 8, 6, 0, 1, 7}}},
    {"torch-random seed=-3 items=7 epochs=2", {{4, 3, 1, 2, 6, 5, 0}, {6, 0, 2, 1, 3, 5, 4}}},
    {"torch-random seed=18446744073709551615 items=7 epochs=2",
     {{0, 3, 1, 6, 4, 2, 5}, {1, 6, 5, 2, 4, 0, 3}}},
    {"torch-random seed=0 items=1 epochs=2", {{0}, {0}}},
    {"torch-random seed=1 items=2 epochs=3", {{0, 1}, {0, 1}, {1, 0}}},
    {"torch-distributed seed=0 items=10 replicas=3 rank=0 epochs=2", {{4, 5, 0, 2}, {5, 2, 9, 4}}},
    {"torch-distributed seed=0 items=10 replicas=3 rank=1 epochs=2", {{1, 3, 8, 4}, {6, 0, 3, 5}}},
    {"torch-distributed seed=0 items=10 replicas=3 rank=2 epochs=2", {{7, 9, 6, 1}, {1, 8, 7, 6}}},
    {"torch-distributed seed=0 items=10 replicas=3 rank=2 epochs=2 drop-last",
     {{7, 9, 6}, {1, 8, 7}}},
    {"torch-distributed seed=9 items=10 replicas=3 rank=1 epochs=2 shuffle=no",
     {{1, 4, 7, 0}, {1, 4, 7, 0}}},
    {"torch-distributed seed=9 items=3 replicas=8 rank=7 epochs=2", {{0}, {0}}},
    {"torch-distributed seed=9 items=3 replicas=20 rank=19 epochs=2", {{0}, {0}}},
    {"torch-distributed seed=-5 items=8 replicas=2 rank=1 epochs=3",
     {{0, 4, 3, 1}, {3, 1, 7, 0}, {6, 1, 0, 4}}},
    {"numpy-permutation seed=42 items=10 epochs=3",
     {{8, 1, 5, 0, 7, 2, 9, 4, 3, 6},
      {0, 1, 8, 5, 3, 4, 7, 9, 6, 2},
      {9, 2, 0, 6, 8, 5, 3, 7, 1, 4}}},
    {"numpy-permutation seed=4294967295 items=17 epochs=1",
     {{8, 1, 5, 14, 10, 15, 16, 13, 11, 9, 6, 0, 4, 7, 12, 2, 3}}},
    {"numpy-permutation seed=7 items=10 epochs=3 reseed",
     {{8, 5, 0, 2, 1, 9, 7, 3, 6, 4},
      {8, 6, 9, 0, 2, 5, 7, 1, 4, 3},
      {8, 4, 7, 2, 1, 9, 3, 0, 6, 5}}},
    {"numpy-permutation seed=7 items=10 epochs=3 in-place",
     {{8, 5, 0, 2, 1, 9, 7, 3, 6, 4},
      {5, 2, 0, 9, 4, 8, 1, 7, 3, 6},
      {0, 4, 2, 6, 1, 3, 7, 5, 8, 9}}},
    {"numpy-permutation seed=7 items=10 epochs=3 in-place reseed",
     {{8, 5, 0, 2, 1, 9, 7, 3, 6, 4},
      {6, 7, 4, 8, 0, 9, 3, 5, 1, 2},
      {1, 0, 5, 4, 7, 2, 8, 6, 3, 9}}},
    {"numpy-permutation seed=0 items=1 epochs=2", {{0}, {0}}},
    {"numpy-generator seed=42 items=10 epochs=3",
     {{5, 6, 0, 7, 3, 2, 4, 9, 1, 8},
      {4, 8, 2, 6, 5, 9, 7, 3, 0, 1},
      {0, 9, 8, 4, 7, 2, 3, 5, 6, 1}}},
    {"numpy-generator seed=18446744073709551615 items=17 epochs=1",
     {{13, 2, 12, 4, 11, 7, 3, 6, 0, 8, 1, 14, 16, 5, 9, 10, 15}}},
    {"numpy-generator seed=7 items=10 epochs=3 reseed",
     {{8, 0, 7, 1, 3, 6, 2, 4, 5, 9},
      {0, 7, 3, 6, 9, 5, 8, 1, 2, 4},
      {7, 2, 5, 9, 8, 3, 6, 4, 0, 1}}},
    {"numpy-generator seed=7 items=10 epochs=3 in-place",
     {{8, 0, 7, 1, 3, 6, 2, 4, 5, 9},
      {3, 7, 5, 1, 9, 0, 6, 2, 8, 4},
      {6, 9, 2, 1, 4, 7, 8, 3, 5, 0}}},
    {"numpy-generator seed=7 items=10 epochs=3 in-place reseed",
     {{8, 0, 7, 1, 3, 6, 2, 4, 5, 9},
      {8, 4, 1, 2, 9, 6, 5, 0, 7, 3},
      {0, 1, 6, 3, 7, 2, 5, 9, 8, 4}}},
    {"numpy-generator seed=0 items=1 epochs=2", {{0}, {0}}},
};

const LongOrder kLongOrders[] = {
    {"torch-random seed=42 items=60000 epochs=10", 0, 60000, 0xd740e1d6f87ebb3dULL},
    {"torch-random seed=42 items=60000 epochs=10", 1, 60000, 0x6176469da0dc302dULL},
    {"torch-random seed=42 items=60000 epochs=10", 9, 60000, 0x8322f2656cc525c5ULL},
    {"torch-random seed=42 items=60000 epochs=3 generator=own", 0, 60000, 0xf8e9e5288a838905ULL},
    {"torch-random seed=42 items=60000 epochs=3 generator=own", 2, 60000, 0x22da7173863d9d3dULL},
    {"torch-random seed=7 items=1000003 epochs=1 loader=none", 0, 1000003, 0x5b2b07946baa0fc7ULL},
    {"torch-distributed seed=0 items=60000 replicas=7 rank=5 epochs=4", 0, 8572,
     0x8cf8b66f63e47456ULL},
    {"torch-distributed seed=0 items=60000 replicas=7 rank=5 epochs=4", 3, 8572,
     0x9571826f0aca8037ULL},
    {"torch-distributed seed=3 items=1281167 replicas=8 rank=7 epochs=2", 1, 160146,
     0x2c3e8cb916ace245ULL},
    {"numpy-permutation seed=42 items=60000 epochs=10", 0, 60000, 0x4208bdb2ddfc1311ULL},
    {"numpy-permutation seed=42 items=60000 epochs=10", 9, 60000, 0x877c4bd5de14e1f9ULL},
    {"numpy-permutation seed=1 items=1281167 epochs=2 in-place", 1, 1281167, 0xc4ee143b1afbb3fdULL},
    {"numpy-generator seed=42 items=60000 epochs=10", 0, 60000, 0xbdf13f9a8eeed3c1ULL},
    {"numpy-generator seed=42 items=60000 epochs=10", 9, 60000, 0x1efe3d4fa7ab6971ULL},
    {"numpy-generator seed=1 items=1281167 epochs=2 in-place", 1, 1281167, 0xbe864228e51deb29ULL},
};

class ShortOrders : public ::testing::TestWithParam<ShortOrder> {};
class LongOrders : public ::testing::TestWithParam<LongOrder> {};

std::string name_of_order(const std::string& declaration) {
  std::string name;
  for (const char letter : declaration) {
    const bool is_plain = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z');
    name += is_plain ? letter : '_';
  }
  return name;
}

TEST_P(ShortOrders, EveryEpochIsTheLibrarys) {
  EpochOrder order = testing::order_of(GetParam().declaration);
  ASSERT_EQ(order.epochs(), GetParam().epochs.size());
  for (std::uint32_t epoch = 0; epoch < order.epochs(); ++epoch) {
    EXPECT_EQ(*order.order(epoch), GetParam().epochs[epoch]) << "epoch " << epoch;
    EXPECT_EQ(order.items_per_epoch(), GetParam().epochs[epoch].size());
  }
}

// Whatever was asked before.
TEST_P(ShortOrders, EpochsMayBeAskedForInAnyOrder) {
  EpochOrder order = testing::order_of(GetParam().declaration);
  for (std::uint32_t epoch = order.epochs(); epoch-- > 0;) {
    EXPECT_EQ(*order.order(epoch), GetParam().epochs[epoch]) << "epoch " << epoch;
    EXPECT_EQ(*order.order(epoch), GetParam().epochs[epoch]) << "epoch " << epoch << " again";
  }
  EXPECT_EQ(*order.order(order.epochs() - 1), GetParam().epochs.back());
}

TEST_P(LongOrders, TheEpochIsTheLibrarys) {
  EpochOrder order = testing::order_of(GetParam().declaration);
  const auto items = order.order(GetParam().epoch);
  ASSERT_TRUE(items) << items.status().message();
  EXPECT_EQ(items->size(), GetParam().count);
  EXPECT_EQ(order.items_per_epoch(), GetParam().count);
  EXPECT_EQ(checksum_of(*items), GetParam().checksum);
}

INSTANTIATE_TEST_SUITE_P(Golden, ShortOrders, ::testing::ValuesIn(kShortOrders),
                         [](const auto& order) { return name_of_order(order.param.declaration); });
INSTANTIATE_TEST_SUITE_P(Golden, LongOrders, ::testing::ValuesIn(kLongOrders),
                         [](const auto& order) {
                           return name_of_order(order.param.declaration) + "_epoch_" +
                                  std::to_string(order.param.epoch);
                         });

}  // namespace
}  // namespace cairn
