// SPDX-License-Identifier: Apache-2.0
// The blocks that a flush leaves behind when it could not store all of its batch.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "memory/buffer/block_access.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

class FailedFlush : public ::testing::Test {
 protected:
  void SetUp() override {
    memory_ = testing::make_memory(testing::memory_only(testing::kMiB), "failed-flush");
    service_.memory = &*memory_;
    actor_ = testing::make_actor(*memory_);
    actor_.counters = &memory_->slot(1).shards[0];
    fd_ = testing::make_unnamed_file();
    file_.emplace(fd_, O_RDWR);
    StoreStatus status;
    ASSERT_EQ(store_status(fd_, &status), 0);
    index_ = open_object(actor_, *file_, status, true);
    ASSERT_NE(index_, ObjectIndex::kNone);
  }
  void TearDown() override {
    actor_.drop_leases();
    close(fd_);
  }

  ObjectAccess access() { return ObjectAccess{actor_, index_, *file_, service_}; }
  Object& object() { return memory_->objects().at(index_); }
  void put(BlockNumber block, const std::string& bytes) {
    ASSERT_EQ(write_object(access(), offset_of(block), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  // The kernel can read the block's page, or not.
  void set_readable(BlockNumber block, bool is_readable) {
    std::byte* page = memory_->bytes(lock_resident(actor_, index_, block).bucket());
    ASSERT_EQ(mprotect(page, kPageBytes, is_readable ? PROT_READ | PROT_WRITE : PROT_NONE), 0);
  }

  std::optional<NodeMemory> memory_;
  testing::AcceptingService service_;
  Actor actor_;
  std::optional<BackingFile> file_;
  int fd_ = -1;
  ObjectIndex index_ = ObjectIndex::kNone;
};

// Both runs make the store longer, and the second one can.
TEST_F(FailedFlush, TheErrorOfOneRunIsThatOfTheBatchAndAllOfItStaysDirty) {
  const std::string bytes(kPageBytes, 'b');
  put(BlockNumber{0}, bytes);
  put(BlockNumber{2}, bytes);
  set_readable(BlockNumber{0}, false);
  EXPECT_EQ(sync_object(access(), false, nullptr), -EFAULT);
  EXPECT_EQ(object().dirty_blocks.load(), 2u);
  set_readable(BlockNumber{0}, true);
  EXPECT_EQ(sync_object(access(), false, nullptr), 0);
  EXPECT_EQ(object().dirty_blocks.load(), 0u);
  std::string stored(kPageBytes, 'x');
  ASSERT_EQ(pread(fd_, stored.data(), stored.size(), 0), static_cast<ssize_t>(stored.size()));
  EXPECT_TRUE(stored == bytes);
}

}  // namespace
}  // namespace cairn
