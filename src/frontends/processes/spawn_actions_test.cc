// SPDX-License-Identifier: Apache-2.0
#include "frontends/processes/spawn_actions.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace cairn {
namespace {

using Kind = SpawnAction::Kind;

TEST(SpawnActionsTest, NotesDoNotDisturbLibc) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  SpawnNotes::init(&actions);
  EXPECT_EQ(SpawnNotes::of(&actions), nullptr);
  char path[] = "/dev/null";
  for (int fd = 10; fd < 40; ++fd) {
    ASSERT_EQ(posix_spawn_file_actions_addopen(&actions, fd, path, O_RDONLY, 0), 0);
    SpawnNotes::add(&actions, {.kind = Kind::kOpen, .fd = fd, .flags = O_RDONLY, .path = path});
    ASSERT_EQ(posix_spawn_file_actions_addclose(&actions, fd), 0);
    SpawnNotes::add(&actions, {.kind = Kind::kClose, .fd = fd});
  }
  path[0] = 'X';
  const SpawnNotes* notes = SpawnNotes::of(&actions);
  ASSERT_NE(notes, nullptr);
  EXPECT_TRUE(notes->is_complete());
  ASSERT_EQ(notes->count(), 60U);
  EXPECT_EQ(notes->at(0).kind, Kind::kOpen);
  EXPECT_STREQ(notes->at(0).path, "/dev/null");
  EXPECT_EQ(notes->at(59).fd, 39);
  EXPECT_EQ(notes->highest(), 39);

  char name[] = "true";
  char* const arguments[] = {name, nullptr};
  pid_t child = -1;
  ASSERT_EQ(posix_spawn(&child, "/bin/true", &actions, nullptr, arguments, environ), 0);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  SpawnNotes::drop(&actions);
  EXPECT_EQ(SpawnNotes::of(&actions), nullptr);
  EXPECT_EQ(posix_spawn_file_actions_destroy(&actions), 0);
}

TEST(SpawnActionsTest, NoObjectHasNoNotes) { EXPECT_EQ(SpawnNotes::of(nullptr), nullptr); }

}  // namespace
}  // namespace cairn
