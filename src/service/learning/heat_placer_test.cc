// SPDX-License-Identifier: Apache-2.0
#include "service/learning/heat_placer.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace cairn::node {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr auto kFile = static_cast<ObjectIndex>(3);

struct Carried {
  std::uint64_t segment = 0;
  std::optional<TierId> to;
  bool is_promotion = false;
  friend bool operator==(const Carried&, const Carried&) = default;
};

class HeatPlacerTest : public ::testing::Test {
 protected:
  HeatPlacerTest() { heat_.resize(64 * kBlockBytes); }

  void access(std::uint32_t block, unsigned times, std::int64_t now_ns) {
    for (unsigned time = 0; time < times; ++time)
      heat_.access({block * kBlockBytes, kBlockBytes}, now_ns);
  }
  // The moves that the placer carries out for the changes.
  std::vector<Carried> place(std::int64_t now_ns, bool is_loaded = false) {
    carried_.clear();
    placer_.note(kFile, heat_, is_loaded);
    placer_.place(now_ns);
    return carried_;
  }

  std::vector<Carried> carried_;
  FileHeat heat_;
  // RAM for two segments, a tier for two more.
  std::array<std::uint64_t, 2> capacities_{2 * kBlockBytes, 2 * kBlockBytes};
  HeatPlacer placer_{capacities_, HeatTrigger::Limits{kSecond, 100}, 0,
                     [this](ObjectIndex object, const HeatRange& range, std::optional<TierId> to,
                            bool is_promotion) {
                       EXPECT_EQ(object, kFile);
                       EXPECT_EQ(range.bytes, kBlockBytes);
                       carried_.push_back({range.offset / kBlockBytes, to, is_promotion});
                     }};
};

TEST_F(HeatPlacerTest, TheHottestComeUpAndDisplaceOthers) {
  heat_.open(0);
  access(10, 2, 1);
  access(11, 3, 1);
  EXPECT_TRUE(place(kSecond / 2).empty()) << "it is not time yet";
  const auto ram = std::optional(TierId::kMemory);
  EXPECT_EQ(place(2 * kSecond), (std::vector<Carried>{{11, ram, true}, {10, ram, true}}));
  access(12, 9, 3 * kSecond);
  EXPECT_EQ(place(3 * kSecond),
            (std::vector<Carried>{{10, std::optional(TierId{1}), false}, {12, ram, true}}));
}

TEST_F(HeatPlacerTest, WhatWasReadOnceSaysNothing) {
  heat_.open(0);
  for (std::uint32_t block = 0; block < 64; ++block) access(block, 1, 1);
  EXPECT_TRUE(place(2 * kSecond).empty());
}

TEST_F(HeatPlacerTest, AFileThatIsOpenedAgainIsPlacedAtOnce) {
  heat_.open(0);
  access(5, 4, 1);
  EXPECT_EQ(place(2 * kSecond).size(), 1U);
  heat_.close(2 * kSecond);
  placer_.forget(kFile);
  FileHeat again;
  ASSERT_TRUE(again.restore(heat_.state()));
  heat_ = again;
  heat_.open(3 * kSecond);
  EXPECT_EQ(place(2 * kSecond + 1, true),
            (std::vector<Carried>{{5, std::optional(TierId::kMemory), true}}));
}

TEST_F(HeatPlacerTest, ManyChangesAreNotWaitedFor) {
  heat_.open(0);
  for (std::uint32_t block = 0; block < 64; ++block) access(block, 2, 1);
  (void)place(2);
  for (std::uint32_t block = 0; block < 64; ++block) access(block, 1, 3);
  EXPECT_EQ(place(4).size(), 4U) << "as many as there is room for";
}

}  // namespace
}  // namespace cairn::node
