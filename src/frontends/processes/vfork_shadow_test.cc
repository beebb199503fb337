// SPDX-License-Identifier: Apache-2.0
#include "frontends/processes/vfork_shadow.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "frontends/descriptors/open_file.h"

namespace cairn {
namespace {

VforkShadow::Note room[VforkShadow::kNotes];

std::vector<int> noted() {
  std::vector<int> descriptors;
  VforkShadow::for_each([&](int fd, OpenFile*) { descriptors.push_back(fd); });
  return descriptors;
}

TEST(VforkShadowTest, NotesOverlayTheTable) {
  OpenFile in_table;
  OpenFile noted_file;
  EXPECT_EQ(VforkShadow::find(3, &in_table), &in_table);
  VforkShadow::note(1, &noted_file);
  VforkShadow::note(3, nullptr);
  EXPECT_EQ(VforkShadow::find(1, nullptr), &noted_file);
  EXPECT_EQ(VforkShadow::find(3, &in_table), nullptr);
  VforkShadow::note(3, &noted_file);
  EXPECT_EQ(VforkShadow::find(3, nullptr), &noted_file) << "the last note counts";
  EXPECT_EQ(noted(), (std::vector<int>{1, 3}));
  EXPECT_TRUE(VforkShadow::has_note(3));
  EXPECT_FALSE(VforkShadow::has_note(2));
  const VforkShadow::Kept kept = VforkShadow::suspend(room);
  EXPECT_TRUE(noted().empty());
  VforkShadow::resume(kept);
  EXPECT_EQ(noted(), (std::vector<int>{1, 3}));
  VforkShadow::suspend(room);
}

TEST(VforkShadowTest, AnExecThatFailsHasItsNotesAlsoWhereAnotherChildTookTheirPlace) {
  OpenFile file;
  VforkShadow::note(1, &file);
  VforkShadow::note(3, nullptr);
  const VforkShadow::Kept kept = VforkShadow::suspend(room);
  const pid_t other = ::vfork();
  if (other == 0) {
    VforkShadow::note(7, &file);
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(other, nullptr, 0), other);
  VforkShadow::resume(kept);
  EXPECT_EQ(noted(), (std::vector<int>{1, 3}));
  EXPECT_EQ(VforkShadow::find(1, nullptr), &file);
  EXPECT_EQ(VforkShadow::find(3, &file), nullptr);
  VforkShadow::suspend(room);
}

TEST(VforkShadowTest, AnExecThatFailsBringsNoNotesOfAnEarlierChildOfItsNumber) {
  OpenFile file;
  VforkShadow::note(7, &file);
  VforkShadow::suspend(room);  // that child has become another program
  VforkShadow::resume(VforkShadow::suspend(room));
  EXPECT_FALSE(VforkShadow::has_note(7));
}

TEST(VforkShadowTest, ChildrenDoNotSeeEachOther) {
  OpenFile file;
  for (unsigned round = 0; round < 3 * VforkShadow::kChildren; ++round) {
    const pid_t child = ::vfork();
    if (child == 0) {
      const bool was_empty = noted().empty();
      VforkShadow::note(static_cast<int>(round), &file);
      // Nothing may be left to destroy: the child shares the parent's heap.
      const std::size_t count = noted().size();
      ::_exit(was_empty && count == 1 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "round " << round;
  }
  EXPECT_TRUE(noted().empty());
}

TEST(VforkShadowTest, MoreNotesThanFitAreDropped) {
  OpenFile file;
  for (unsigned fd = 0; fd < 2 * VforkShadow::kNotes; ++fd)
    VforkShadow::note(static_cast<int>(fd), &file);
  EXPECT_EQ(noted().size(), VforkShadow::kNotes);
  EXPECT_FALSE(VforkShadow::is_complete());
  EXPECT_EQ(VforkShadow::count(), VforkShadow::kNotes);
  VforkShadow::suspend(room);
  EXPECT_TRUE(VforkShadow::is_complete()) << "they were those of one child";
}

}  // namespace
}  // namespace cairn
