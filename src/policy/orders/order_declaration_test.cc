// SPDX-License-Identifier: Apache-2.0
#include "policy/orders/order_declaration.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "policy/orders/testing/order_texts.h"

namespace cairn {
namespace {

OrderDeclaration parsed(const std::string& text) {
  auto declaration = parse_order(text);
  EXPECT_TRUE(declaration) << text << ": " << declaration.status().message();
  return declaration ? *declaration : OrderDeclaration{};
}

void expect_refused(const std::string& text, const std::string& part) {
  const auto declaration = parse_order(text);
  testing::expect_refusal(declaration, text, part);
  EXPECT_EQ(declaration.status().code(), StatusCode::kInvalid);
}

TEST(OrderDeclaration, EachKindIsRead) {
  const auto random = parsed("torch-random seed=42 items=60000 epochs=10");
  EXPECT_EQ(random.kind, OrderKind::kTorchRandom);
  EXPECT_EQ(random.seed, 42U);
  EXPECT_EQ(random.items, 60'000U);
  EXPECT_EQ(random.epochs, 10U);
  EXPECT_EQ(random.loader, TorchLoader::kEachEpoch);

  const auto distributed =
      parsed("torch-distributed items=100 replicas=8 rank=7 drop_last shuffle=no");
  EXPECT_EQ(distributed.kind, OrderKind::kTorchDistributed);
  EXPECT_EQ(distributed.seed, 0U) << "the sampler's own default";
  EXPECT_EQ(distributed.replicas, 8U);
  EXPECT_EQ(distributed.rank, 7U);
  EXPECT_TRUE(distributed.drops_last);
  EXPECT_FALSE(distributed.shuffles);

  EXPECT_EQ(parsed("numpy-permutation seed=4294967295 items=1").seed, UINT32_MAX);
  const auto generator = parsed("numpy-generator seed=7 items=5 reseed in-place=true");
  EXPECT_EQ(generator.kind, OrderKind::kNumpyGenerator);
  EXPECT_TRUE(generator.reseeds);
  EXPECT_TRUE(generator.is_in_place);

  const auto list = parsed("  list \"my order.txt\"\tepochs=3 lines=files\n");
  EXPECT_EQ(list.kind, OrderKind::kList);
  EXPECT_EQ(list.list_path, "my order.txt");
  EXPECT_EQ(list.epochs, 3U);
  EXPECT_TRUE(list.is_list_of_files);
  EXPECT_EQ(parsed("list a=b").list_path, "a=b");
}

TEST(OrderDeclaration, TorchMayBeSaidMoreExactly) {
  const auto order =
      parsed("torch-random seed=-1 items=5 loader=first-epoch generator=own drawn=1000");
  EXPECT_EQ(order.seed, UINT64_MAX);
  EXPECT_EQ(order.loader, TorchLoader::kFirstEpoch);
  EXPECT_TRUE(order.has_own_generator);
  EXPECT_EQ(order.drawn_before, 1000U);
  EXPECT_EQ(parsed("torch-random seed=1 items=5 loader=none").loader, TorchLoader::kNone);
}

TEST(OrderDeclaration, LayoutsAreRead) {
  const auto packed = parsed("numpy-generator seed=7 items=10 item-bytes=3K header=16");
  ASSERT_TRUE(packed.layout.is_packed());
  EXPECT_EQ(packed.layout.range_of(0), (ItemRange{16, 3072}));
  EXPECT_EQ(packed.layout.range_of(9), (ItemRange{16 + 9 * 3072, 3072}));
  const auto large = parsed("numpy-generator seed=7 items=2147483648 item-bytes=4294967295");
  EXPECT_EQ(large.layout.range_of(0x7fffffff).offset, 0x7fffffff * std::uint64_t{4294967295});
  const auto files = parsed("torch-random seed=7 items=10 item-files=\"a b\"");
  EXPECT_TRUE(files.layout.is_files());
  EXPECT_EQ(files.layout.files_path, "a b");
}

TEST(OrderDeclaration, WhatIsWrongIsNamedWithWhatToDo) {
  expect_refused("", "nothing is declared; write torch-random,");
  expect_refused("torch-rand seed=1", "\"torch-rand\" is no kind of order; write torch-random,");
  expect_refused("torch-random items=5", "seed= is missing");
  expect_refused("torch-random seed=1", "items= is missing");
  expect_refused("torch-distributed items=5 rank=0", "replicas= is missing");
  expect_refused("torch-random seed=1 items=5 rank=0", "\"rank\" is no field of torch-random");
  expect_refused("torch-random seed=1 items=5 items=6", "items= is given twice");
  expect_refused("torch-random seed items=5", "seed has no value; write seed=VALUE");
  expect_refused("torch-distributed items=5 replicas=4 rank=4", "ranks go from 0 to replicas - 1");
  expect_refused("torch-distributed items=5 replicas=4 rank=1 shuffle=maybe", "write yes or no");
  expect_refused("torch-random seed=1 items=5 loader=some", "loader=some: write each-epoch");
  expect_refused("torch-random seed=1 items=5 generator=mine", "write default or own");
  expect_refused("list", "list names no file");
  expect_refused("list \"\"", "write the path");
  expect_refused("list a seed=1", "\"seed\" is no field of list");
  expect_refused("list \"a", "a quotation mark is missing");
  expect_refused("torch-random seed=1 items=5 item-bytes=1 item-files=a", "contradict");
  expect_refused("torch-random seed=1 items=5 header=1", "say item-bytes= too");
  expect_refused("torch-random seed=1 items=5 batch=2", "say workers= too");
  expect_refused("torch-random seed=1 items=5 workers=0", "from 1 to");
  expect_refused("torch-random seed=1 items=5 item-bytes=0", "at least one byte");
  expect_refused("torch-random seed=1 items=5 item-bytes=big", "write a size in bytes");
  expect_refused("list a lines=files item-bytes=5", "leave item-files= and item-bytes= out");
  expect_refused("torch-random seed=1 items=5 \"items=5\"", "is no field");
}

TEST(OrderDeclaration, WhatIsOutOfRangeIsRefused) {
  expect_refused("torch-random seed=1 items=0", "items=0: write a number from 1 to 2147483648");
  expect_refused("torch-random seed=1 items=2147483649", "items=2147483649");
  expect_refused("torch-random seed=1 items=-5", "items=-5");
  expect_refused("torch-random seed=1 items=5 epochs=0", "epochs=0");
  expect_refused("torch-random seed=1 items=5 epochs=1048577", "epochs=1048577");
  expect_refused("torch-random seed=18446744073709551616 items=5", "seed=18446744073709551616");
  expect_refused("torch-random seed=-9223372036854775809 items=5", "none below -2^63");
  expect_refused("torch-distributed seed=9223372036854775808 items=5 replicas=1 rank=0", "seed=");
  expect_refused("numpy-permutation seed=4294967296 items=5", "from 0 to 4294967295");
  expect_refused("numpy-permutation seed=-1 items=5", "from 0 to 4294967295");
  expect_refused("numpy-permutation seed=4294967295 items=5 epochs=2 reseed", "the last epoch");
  expect_refused("numpy-generator seed=1.5 items=5", "seed=1.5");
  expect_refused("numpy-generator seed=1 items=2147483648 item-bytes=4294967297", "2^63 bytes");
  expect_refused("numpy-generator seed=1 items=1 item-bytes=1 header=9223372036854775807",
                 "2^63 bytes");
}

TEST(OrderDeclaration, RandomDamageIsRefusedOrADeclaration) {
  const char* given = std::getenv("CAIRN_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("CAIRN_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  const std::string whole =
      "torch-distributed seed=3 items=50 epochs=4 replicas=5 rank=2 item-bytes=4K";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = whole;
    for (std::uint64_t wounds = random() % 4 + 1; wounds > 0; --wounds) {
      const std::size_t at = random() % text.size();
      text[at] = static_cast<char>(random() % 4 == 0 ? random() : "0 =\"-_9KT"[random() % 9]);
    }
    const auto declaration = parse_order(text);
    if (!declaration) {
      ASSERT_TRUE(declaration.status().message().starts_with("order: ")) << text;
      continue;
    }
    ASSERT_GT(declaration->items, 0U) << text;
    ASSERT_LT(declaration->rank, declaration->replicas) << text;
  }
}

}  // namespace
}  // namespace cairn
