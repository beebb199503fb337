// SPDX-License-Identifier: Apache-2.0
#include "service/capacity/headroom.h"

#include <gtest/gtest.h>

namespace cairn::node {
namespace {

class Program {
 public:
  explicit Program(Headroom& headroom) : headroom_(headroom) {}

  void write_new(unsigned slabs) { advance(slabs, slabs); }
  void overwrite(unsigned slabs) { advance(0, slabs); }
  void read_new(unsigned slabs) { advance(slabs, 0); }
  void compute() {
    for (int look = 0; look < 3; ++look) advance(0, 0);
  }

 private:
  void advance(unsigned consumed, unsigned written) {
    consumed_ += consumed;
    written_ += written;
    now_ms_ += Headroom::kPauseMs;
    headroom_.observe(now_ms_, consumed_, written_);
  }
  Headroom& headroom_;
  std::int64_t now_ms_ = 1000;
  std::uint64_t consumed_ = 0;
  std::uint64_t written_ = 0;
};

TEST(Headroom, IsWhatTheBurstsTake) {
  Headroom headroom(1000);
  Program program(headroom);
  EXPECT_EQ(headroom.take_wanted(), 0u);
  program.write_new(150);
  program.write_new(50);
  EXPECT_TRUE(headroom.is_in_burst());
  EXPECT_EQ(headroom.take_wanted(), 0u);
  program.compute();
  EXPECT_FALSE(headroom.is_in_burst());
  EXPECT_EQ(headroom.take_wanted(), 0u) << "one burst may be the only one";
  program.write_new(200);
  EXPECT_EQ(headroom.take_wanted(), 0u) << "not while it is written";
  program.compute();
  EXPECT_EQ(headroom.take_wanted(), 200u);
  program.read_new(200);
  program.compute();
  EXPECT_EQ(headroom.take_wanted(), 0u) << "who reads may have the room";
}

TEST(Headroom, IsAtMostHalfOfTheTier) {
  Headroom headroom(1000);
  Program program(headroom);
  for (int burst = 0; burst < 2; ++burst) {
    program.write_new(900);
    program.compute();
  }
  EXPECT_EQ(headroom.take_wanted(), 500u);
}

TEST(Headroom, FollowsSlowlyWhenBurstsShrink) {
  Headroom headroom(1000);
  Program program(headroom);
  for (int burst = 0; burst < 2; ++burst) {
    program.write_new(400);
    program.compute();
  }
  program.write_new(10);
  program.compute();
  EXPECT_EQ(headroom.take_wanted(), 350u);
  for (int burst = 0; burst < 60; ++burst) {
    program.write_new(10);
    program.compute();
  }
  EXPECT_LT(headroom.take_wanted(), 20u);
}

TEST(Headroom, NeitherOverwritingNorReadingAsksForRoom) {
  Headroom headroom(1000);
  Program program(headroom);
  for (int burst = 0; burst < 4; ++burst) {
    program.overwrite(300);
    program.compute();
    program.read_new(300);
    program.compute();
  }
  EXPECT_EQ(headroom.take_wanted(), 0u);
}

}  // namespace
}  // namespace cairn::node
