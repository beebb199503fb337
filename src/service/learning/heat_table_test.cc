// SPDX-License-Identifier: Apache-2.0
#include "service/learning/heat_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "memory/tiers/testing/test_memory.h"
#include "service/learning/stream_table.h"

namespace cairn::node {
namespace {

class HeatTableTest : public ::testing::Test {
 protected:
  HeatTableTest()
      : memory_(testing::make_memory(testing::memory_only(64 * kBlockBytes))),
        streams_(memory_),
        table_(memory_, make_directory()) {
    const Actor actor = testing::make_actor(memory_);
    for (std::uint64_t inode = 0; inode < files_.size(); ++inode)
      files_[inode] = testing::make_object(actor, file_key(1, 2 + inode, 3));
  }
  ~HeatTableTest() override { ::rmdir(directory_.c_str()); }

  std::string make_directory() {
    char pattern[] = "/tmp/cairn-heat-table-XXXXXX";
    const char* made = ::mkdtemp(pattern);
    if (made != nullptr) directory_ = made;
    return directory_;
  }
  void tell(AccessKind kind, std::uint16_t slot, std::uint32_t description, unsigned file = 0) {
    ToldAccess told;
    told.event.owner = memory_.owners().current(slot);
    told.event.object = files_[file];
    told.event.stream = static_cast<DescriptionIndex>(description);
    told.event.kind = kind;
    told.event.length = kPageBytes;
    streams_.follow({&told, 1});
    table_.on_accesses({&told, 1});
    streams_.forget_ended();
  }
  void note_deaths() {
    table_.on_deaths(streams_.follow_deaths());
    streams_.forget_ended();
  }
  // As the program itself holds it.
  DescriptionIndex describe(unsigned file) {
    DescriptionTable& descriptions = memory_.descriptions();
    const DescriptionIndex index = descriptions.create(files_[file], 0);
    hold_ = descriptions.hold(index, memory_.owners().current(kParent), HoldKind::kDescription);
    return index;
  }
  std::uint64_t epochs(unsigned file = 0) {
    const auto picture = table_.picture_of(files_[file], "file");
    return picture ? picture->epochs : 0;
  }

  static constexpr std::uint16_t kParent = 3;
  static constexpr std::uint16_t kChild = 4;
  std::string directory_;
  NodeMemory memory_;
  StreamTable streams_;
  HeatTable table_;
  std::array<ObjectIndex, 2> files_{};
  HoldIndex hold_{};
};

TEST_F(HeatTableTest, AnEpochEndsWhoeverClosesTheFile) {
  for (std::uint32_t description = 1; description <= 5; ++description) {
    tell(AccessKind::kOpen, kParent, description);
    tell(AccessKind::kMiss, kChild, description);
    EXPECT_EQ(epochs(), description);
    tell(AccessKind::kClose, kChild, description);
    EXPECT_EQ(streams_.open_count(), 0U);
  }
}

// A shell that lives for days opens one file after the other for its children; their closes may be
// lost.
TEST_F(HeatTableTest, WhatIsFollowedIsBounded) {
  const std::uint32_t records = memory_.descriptions().capacity();
  for (const std::uint16_t slot : {kParent, kChild}) {
    for (std::uint32_t description = 1; description < records; ++description)
      tell(AccessKind::kOpen, slot, description, slot % 2);
  }
  EXPECT_LT(streams_.open_count(), records);
  tell(AccessKind::kOpen, kParent, UINT32_MAX);
  EXPECT_LT(streams_.open_count(), records);
}

TEST_F(HeatTableTest, ADeadParentsFileIsOpenWhileAChildHasIt) {
  const DescriptionIndex description = describe(0);
  tell(AccessKind::kOpen, kParent, raw(description));
  note_deaths();
  EXPECT_EQ(streams_.open_count(), 1U) << "somebody holds the description";
  memory_.descriptions().release(hold_, memory_.owners().current(kParent));
  note_deaths();
  EXPECT_EQ(streams_.open_count(), 0U);
}

TEST_F(HeatTableTest, ALateCloseIsNotTakenForThatOfTheNextFile) {
  tell(AccessKind::kOpen, kParent, 7, 1);
  tell(AccessKind::kClose, kChild, 7, 0);
  EXPECT_EQ(streams_.open_count(), 1U);
  tell(AccessKind::kClose, kParent, 7, 1);
  EXPECT_EQ(streams_.open_count(), 0U);
}

}  // namespace
}  // namespace cairn::node
