// SPDX-License-Identifier: Apache-2.0
#include "frontends/descriptors/open_file_pool.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "frontends/descriptors/open_file.h"

namespace cairn {
namespace {

TEST(OpenFilePool, GivesEachRecordOnceAndClean) {
  constexpr unsigned kMoreThanMayRest = 17 * 1024;
  std::set<OpenFile*> taken;
  for (unsigned count = 0; count < kMoreThanMayRest; ++count) {
    OpenFile* file = OpenFilePool::take();
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(file->hold, HoldIndex::kNone);
    EXPECT_TRUE(taken.insert(file).second);
    file->hold = static_cast<HoldIndex>(7);
  }
  for (OpenFile* file : taken) OpenFilePool::give_back(file);
  OpenFile* again = OpenFilePool::take();
  EXPECT_TRUE(taken.contains(again)) << "memory is used again";
  EXPECT_EQ(again->hold, HoldIndex::kNone);
  OpenFilePool::give_back(again);
}

TEST(OpenFilePool, ARecordRestsForManyOthers) {
  OpenFile* closed = OpenFilePool::take();
  OpenFilePool::give_back(closed);
  for (unsigned count = 0; count < 1000; ++count) {
    OpenFile* next = OpenFilePool::take();
    EXPECT_NE(next, closed) << "a thread that is late may still be looking at it";
    OpenFilePool::give_back(next);
  }
}

}  // namespace
}  // namespace cairn
