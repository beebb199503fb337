// SPDX-License-Identifier: Apache-2.0
// A file that a program has opened by an unmanaged name: while it may have it open so, the file is
// the kernel's.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "memory/backing/posix_backing.h"
#include "memory/buffer/kernel_use.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

class SuspectedThroughTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "cairn-suspected-XXXXXX";
    before_ = ::mkstemp(path_.data());
    ASSERT_GE(before_, 0);
    file_.emplace(::open(path_.c_str(), O_RDWR | O_CLOEXEC), O_RDWR);
    StoreStatus status;
    ASSERT_EQ(file_->status(&status), 0);
    memory_.unserved_board().unmanaged.note(status.key);
    service_.memory = &memory_;
  }
  void TearDown() override {
    actor_.drop_leases();
    ::close(file_->descriptor());
    close_before();
    ::unlink(path_.c_str());
  }
  ObjectIndex open() {
    StoreStatus status;
    EXPECT_EQ(file_->status(&status), 0);
    status.stamp.reclaims = memory_.objects().reclaims();
    return open_object(actor_, *file_, status, true);
  }
  void close_before() {
    if (before_ >= 0) ::close(before_);
    before_ = -1;
  }
  ObjectAccess access(ObjectIndex index) { return {actor_, index, *file_, service_}; }
  const Object& object(ObjectIndex index) const { return memory_.objects().at(index); }

  NodeMemory memory_ = testing::make_memory(testing::memory_only(16 * testing::kMiB));
  Actor actor_ = testing::make_actor(memory_);
  testing::AcceptingService service_;
  std::string path_;
  int before_ = -1;
  std::optional<PosixBacking> file_;
};

TEST_F(SuspectedThroughTest, LastsUntilAnOpenFindsNobodyElse) {
  const ObjectIndex index = open();
  EXPECT_TRUE(is_through_suspected(object(index)));
  ASSERT_EQ(write_object(access(index), 0, "abc", 3), 3);
  EXPECT_EQ(object(index).blocks.load(), 0u);
  char seen[4] = "";
  EXPECT_EQ(::pread(before_, seen, 3, 0), 3);
  EXPECT_STREQ(seen, "abc");

  EXPECT_EQ(open(), index) << "a second open, while the file is open by the other name";
  EXPECT_TRUE(is_through_suspected(object(index)));
  ASSERT_EQ(close_object(access(index), true), 0);
  ASSERT_EQ(::pwrite(before_, "longer than it was", 18, 0), 18);
  close_before();
  EXPECT_EQ(open(), index);
  EXPECT_TRUE(is_through_suspected(object(index))) << "there were two opens";
  ASSERT_EQ(close_object(access(index), true), 0);
  ASSERT_EQ(close_object(access(index), true), 0);

  EXPECT_EQ(open(), index);
  EXPECT_EQ(object(index).through.load(), 0u);
  EXPECT_EQ(object(index).size.load(), 18u);
  ASSERT_EQ(write_object(access(index), 0, "abc", 3), 3);
  EXPECT_NE(object(index).blocks.load(), 0u) << "it is buffered from here on";
  ASSERT_EQ(close_object(access(index), true), 0);
}

TEST_F(SuspectedThroughTest, IsNoReferenceToTheRecord) {
  const ObjectIndex index = open();
  ASSERT_EQ(close_object(access(index), true), 0);
  EXPECT_NE(object(index).through.load(), 0u);
  ASSERT_TRUE(memory_.objects().reclaim(index, actor_.self, actor_.owners()));
  EXPECT_TRUE(is_through_suspected(object(open()))) << "the trace outlives the record";
}

TEST_F(SuspectedThroughTest, EndsAtOnceWhereNobodyElseHasTheFileOpen) {
  close_before();
  const ObjectIndex index = open();
  EXPECT_EQ(object(index).through.load(), 0u);
  ASSERT_EQ(close_object(access(index), true), 0);
}

}  // namespace
}  // namespace cairn
