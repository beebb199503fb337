// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/sweep.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <vector>

#include "memory/tiers/testing/test_memory.h"

namespace cairn::node {
namespace {

// Bytes come before times: where somebody who might write a file has died, what is kept of its
// content by its times may be older than the file.
class SweepTest : public ::testing::Test {
 protected:
  static constexpr std::uint16_t kWriter = 2;

  ObjectIndex opened(std::uint64_t inode, int flags) {
    const ObjectIndex object = testing::make_object(actor_, file_key(1, inode, 1));
    const DescriptionIndex description =
        memory_.descriptions().create(object, static_cast<std::uint32_t>(flags));
    EXPECT_NE(memory_.descriptions().hold(description, writer_, HoldKind::kDescription),
              HoldIndex::kNone);
    return object;
  }
  std::uint32_t cut_writes(ObjectIndex object) const {
    return memory_.objects().at(object).cut_writes.load();
  }

  NodeMemory memory_ = testing::make_memory(testing::memory_only(4 * kBlockBytes));
  Actor actor_ = testing::make_actor(memory_);
  Owner writer_ = memory_.owners().current(kWriter);
};

TEST_F(SweepTest, TheDeathOfOneThatMightWriteIsAChange) {
  const ObjectIndex written = opened(7, O_RDWR);
  const ObjectIndex read = opened(8, O_RDONLY);
  memory_.owners().advance(kWriter);
  std::vector<TransitHold> in_transit;
  EXPECT_EQ(sweep_holds(actor_, std::vector{writer_}, &in_transit), 2u);
  EXPECT_EQ(cut_writes(written), 1u);
  EXPECT_EQ(cut_writes(read), 0u);
}

TEST_F(SweepTest, AReplacedImageMayHaveBeenWriting) {
  const ObjectIndex written = opened(7, O_WRONLY);
  sweep_cut_writes(actor_, std::vector{writer_});
  EXPECT_EQ(cut_writes(written), 1u);
}

// What is kept of a file by its times stays away when the file gets a record anew.
TEST_F(SweepTest, NoNumberOfACutWriteComesBack) {
  const ObjectTable& objects = memory_.objects();
  const ObjectIndex written = opened(7, O_RDWR);
  objects.note_cut_write(written);
  objects.note_cut_write(written);
  const ObjectIndex other = opened(8, O_RDWR);
  EXPECT_GE(cut_writes(other), cut_writes(written)) << "it may be the same file";
  const std::uint32_t before = cut_writes(other);
  objects.note_cut_write(other);
  EXPECT_GT(cut_writes(other), before);
}

}  // namespace
}  // namespace cairn::node
