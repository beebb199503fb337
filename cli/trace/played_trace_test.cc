// SPDX-License-Identifier: Apache-2.0
#include "cli/trace/played_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "cli/terminal/failure.h"
#include "cli/trace/testing/listed_events.h"

namespace cairn::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TraceEvent event(TraceKind kind, std::uint32_t file, std::uint64_t offset = 0,
                 std::uint32_t length = 0, std::uint32_t process = 0) {
  TraceEvent made;
  made.kind = kind;
  made.file = file;
  made.offset = offset;
  made.length = length;
  made.process = process;
  return made;
}

PlayedTrace played(std::vector<TraceEvent> events, const PlaySelection& selection = {}) {
  return {std::make_unique<ListedEvents>(std::move(events),
                                         std::vector<std::string>{"/data/a", "b", "c"}),
          selection};
}

std::vector<std::uint64_t> offsets_of(PlayedTrace trace) {
  std::vector<std::uint64_t> offsets;
  for (TraceEvent next; trace.next(&next);) offsets.push_back(next.offset);
  return offsets;
}

constexpr auto kRead = TraceKind::kReadMiss;
constexpr auto kWrite = TraceKind::kWrite;

TEST(PathBelow, StaysBelowTheDirectory) {
  EXPECT_EQ(path_below("/pfs/run 7/in.h5"), "pfs/run 7/in.h5");
  EXPECT_EQ(path_below("file 3"), "file 3");
  EXPECT_EQ(path_below("a//b/./c/"), "a/b/c");
  EXPECT_EQ(path_below("a/../b"), "b");
  EXPECT_EQ(path_below("../../etc/passwd"), "_up/_up/etc/passwd");
  EXPECT_EQ(path_below("/a/../../etc/passwd"), "_up/etc/passwd");
  EXPECT_EQ(path_below("_up/../x"), "_up/_up/x") << "no name leads above an _up";
  EXPECT_EQ(path_below(".."), "_up");
  for (const char* empty : {"", "/", ".", "a/.."}) EXPECT_EQ(path_below(empty), "unnamed");
}

TEST(PlayedTrace, LeavesOutWhatIsNoAccess) {
  const std::vector<TraceEvent> events = {event(kRead, 0, 1, 10), event(kRead, 0, 2, 0),
                                          event(TraceKind::kAdvice, 0, 3, 10),
                                          event(kWrite, 0, 4, 10), event(kRead, 0, 5, 10)};
  EXPECT_THAT(offsets_of(played(events)), ElementsAre(1, 4, 5));
  EXPECT_THAT(offsets_of(played(events, {.reads_only = true})), ElementsAre(1, 5));
  EXPECT_THAT(offsets_of(played(events, {.accesses_max = 2})), ElementsAre(1, 4));
}

TEST(PlayedTrace, LongAccessesBecomeSeveralCalls) {
  const std::vector<TraceEvent> events = {event(kRead, 0, 100, 25), event(kRead, 0, 500, 10),
                                          event(kRead, 0, 900, 1)};
  EXPECT_THAT(offsets_of(played(events, {.accesses_max = 2, .call_bytes_max = 10})),
              ElementsAre(100, 110, 120, 500))
      << "an access counts once, whatever it becomes";
}

TEST(PlayedTrace, FailsWhereTheTraceIsDamaged) {
  PlayedTrace trace(
      std::make_unique<ListedEvents>(std::vector<TraceEvent>{event(kRead, 0, 0, 1)},
                                     std::vector<std::string>{"a"},
                                     Status(StatusCode::kInvalid, "damaged at byte 77")),
      {});
  TraceEvent next;
  try {
    while (trace.next(&next)) {
    }
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("damaged at byte 77"));
    EXPECT_THAT(failure.remedy(), HasSubstr("--first"));
  }
}

TEST(PlayedTrace, RefusesWhatNoFileHas) {
  PlayedTrace trace = played({event(kRead, 1, INT64_MAX - 5, 10)});
  TraceEvent next;
  EXPECT_THROW(trace.next(&next), Failure);
}

TEST(PlayPlan, NeedsWhatIsReadBeforeItIsWritten) {
  PlayedTrace trace = played({
      event(kWrite, 0, 0, 100), event(kRead, 0, 20, 80),                          // written before
      event(kRead, 1, 50, 50),                                                    // not
      event(kWrite, 2, 0, 10), event(kWrite, 2, 20, 10), event(kRead, 2, 0, 30),  // but for a gap
  });
  const PlayPlan plan = plan_of(trace, true);
  EXPECT_EQ(plan.files.at(0).bytes_needed, 0U);
  EXPECT_TRUE(plan.files[0].is_written);
  EXPECT_EQ(plan.files.at(1).bytes_needed, 100U);
  EXPECT_FALSE(plan.files[1].is_written);
  EXPECT_EQ(plan.files.at(2).bytes_needed, 20U);
  EXPECT_EQ(plan.files[0].path, "data/a");
  EXPECT_EQ(plan.files_used, 3U);
}

TEST(PlayPlan, WrittenRangesJoin) {
  PlayedTrace trace =
      played({event(kWrite, 0, 10, 10), event(kWrite, 0, 30, 10), event(kWrite, 0, 20, 10),
              event(kRead, 0, 10, 30), event(kWrite, 0, 12, 3), event(kRead, 0, 10, 30)});
  EXPECT_EQ(plan_of(trace, true).files.at(0).bytes_needed, 0U);
}

TEST(PlayPlan, RanksThatDoNotWaitNeedAllThatIsRead) {
  PlayedTrace trace = played({event(kWrite, 0, 0, 100), event(kRead, 0, 20, 80, 1)});
  EXPECT_EQ(plan_of(trace, false).files.at(0).bytes_needed, 100U);
}

TEST(PlayPlan, StreamsAreOpenUntilTheirLastUse) {
  PlayedTrace trace = played({event(kRead, 0, 0, 10), event(kWrite, 0, 0, 10, 1),
                              event(kRead, 0, 0, 10), event(kRead, 1, 0, 10)});
  const PlayPlan plan = plan_of(trace, true);
  EXPECT_EQ(plan.streams.size(), 3U);
  EXPECT_EQ(plan.processes, 2U);
  const StreamUse& first = plan.streams.at({.file = 0, .process = 0, .stream = 0});
  EXPECT_EQ(first.last_event, 2U);
  EXPECT_TRUE(first.reads && !first.writes);
  const StreamUse& second = plan.streams.at({.file = 0, .process = 1, .stream = 0});
  EXPECT_EQ(second.last_event, 1U);
  EXPECT_TRUE(!second.reads && second.writes);
}

TEST(PlayPlan, WithoutWritesFilesThatAreOnlyWrittenAreNotUsed) {
  PlayedTrace trace = played({event(TraceKind::kOpen, 0), event(kWrite, 0, 0, 10),
                              event(TraceKind::kClose, 0), event(kRead, 1, 0, 10)},
                             {.reads_only = true});
  const PlayPlan plan = plan_of(trace, true);
  EXPECT_FALSE(plan.files.at(0).is_used);
  EXPECT_TRUE(plan.files.at(1).is_used);
  EXPECT_EQ(plan.files_used, 1U);
}

}  // namespace
}  // namespace cairn::cli
