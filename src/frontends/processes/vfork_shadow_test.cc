// SPDX-License-Identifier: Apache-2.0
#include "frontends/processes/vfork_shadow.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "frontends/descriptors/open_file.h"

namespace cairn {
namespace {

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
  VforkShadow::suspend();
  EXPECT_TRUE(noted().empty());
  VforkShadow::resume();
  EXPECT_EQ(noted(), (std::vector<int>{1, 3}));
  VforkShadow::suspend();
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
  VforkShadow::suspend();
}

}  // namespace
}  // namespace cairn
