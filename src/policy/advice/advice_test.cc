// SPDX-License-Identifier: Apache-2.0
// The arithmetic of advice against examples that are worked out by hand, and its fluid queue
// against a simulation of single blocks.
#include "policy/advice/advice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "policy/advice/dirty_room.h"
#include "policy/advice/plan_choice.h"
#include "policy/advice/testing/advice_scene.h"

namespace cairn::advice {
namespace {

Wishes wishes_of_test() {
  Wishes wishes;
  wishes.spare_tier = {
      .name = "nvme", .directory = {}, .bytes = 0, .is_durable = false, .speed = instant()};
  return wishes;
}

TEST(DeviceSpeedTest, LatencyIsSharedByWhatIsInFlightAndBandwidthIsNot) {
  DeviceSpeed speed = slow_store();
  speed.queue_depth = 4;
  const DeviceLoad load{.direction = Direction::kRead, .requests = 100, .bytes = 1000 * kBlock};
  EXPECT_DOUBLE_EQ(seconds_of(speed, load), 100 * 1e-3 + 1);
  DeviceLoad many = load;
  many.concurrency = 16;
  EXPECT_DOUBLE_EQ(seconds_of(speed, many), 100 * 1e-3 / 4 + 1);
}

TEST(DeviceSpeedTest, ATrainedModelAnswersWithItsOwnErrorWhereItFits) {
  DeviceSpeed speed = slow_store();
  speed.error = 2;
  speed.trained = [](const DeviceLoad& load) -> std::optional<TrainedTime> {
    if (load.direction == Direction::kWrite) return std::nullopt;
    return TrainedTime{.seconds = 7 * load.requests, .error = 1.1};
  };
  const DeviceLoad reads{.direction = Direction::kRead, .requests = 100, .bytes = 100 * kBlock};
  DeviceLoad writes = reads;
  writes.direction = Direction::kWrite;
  EXPECT_DOUBLE_EQ(seconds_of(speed, reads), 700);
  EXPECT_DOUBLE_EQ(seconds_of(speed, writes), 100 * 2e-3);
  EXPECT_NEAR(seconds_of(speed.slowed(speed.error), reads), 700 * 1.1, 1e-6);
  EXPECT_NEAR(seconds_of(speed.slowed(1 / speed.error), reads), 700 / 1.1, 1e-6);
  EXPECT_DOUBLE_EQ(seconds_of(speed.slowed(speed.error), writes), 100 * 4e-3);
  EXPECT_EQ(seconds_of(speed, {}), 0) << "nothing is not asked for";
}

TEST(DirtyRoomTest, WhatIsBeyondTheRoomWaitsForTheStore) {
  WriteTimes times{.part_seconds = 1, .bytes = {300, 0, 300}};
  // 200 are left of the first 300 after its second, 100 of them too many: one second of waiting.
  // One second later nothing is left; then the same again, and 100 remain.
  const DrainedWrites drained = drain_writes(times, 3, 100, 100);
  EXPECT_DOUBLE_EQ(drained.stall_seconds, 2);
  EXPECT_DOUBLE_EQ(drained.drain_seconds, 1);
  EXPECT_DOUBLE_EQ(drained.highest_bytes, 100);
  EXPECT_DOUBLE_EQ(drain_writes(times, 3, 100, 1000).stall_seconds, 0);
}

TEST(DirtyRoomTest, FluidAgreesWithASimulationOfBlocks) {
  // Bursts of 20 blocks each second for ten seconds; the store takes one in 0.1 s; room for 15.
  WriteTimes times{.part_seconds = 0.01, .bytes = std::vector<double>(1000, 0)};
  double clock = 0;
  double dirty = 0;
  double stalled = 0;
  for (unsigned second = 0; second < 10; ++second) {
    times.bytes[second * 100UL] = 20;
    dirty = std::max(0.0, dirty - (second - clock) * 10);
    clock = second;
    for (unsigned block = 0; block < 20; ++block) {
      if (dirty + 1 > 15) {
        const double wait = (dirty + 1 - 15) / 10;
        stalled += wait;
        dirty -= wait * 10;
      }
      dirty += 1;
    }
  }
  const DrainedWrites drained = drain_writes(times, 10, 10, 15);
  EXPECT_NEAR(drained.stall_seconds, stalled, 0.1 * stalled);
}

TEST(ForecastTest, ALoopIsReadOnceIfItFits) {
  Scene scene;
  for (unsigned pass = 0; pass < 10; ++pass) scene.read_apart(100);
  const Workload work = scene.workload();
  const Machine machine = machine_of_test();
  // 1000 uses of 2 ms; with Cairn the first 100.
  EXPECT_NEAR(forecast_without(work, machine).seconds(), 2.0, 0.01);
  EXPECT_NEAR(forecast_with(work, machine, plan_with(64 * kMib)).seconds(), 0.2, 0.01);
  EXPECT_NEAR(gain_of(work, machine, plan_with(64 * kMib)).share, 0.9, 0.01);
  // LRU has none of a loop that does not fit.
  EXPECT_NEAR(forecast_with(work, machine, plan_with(50 * kBlock)).seconds(), 2.0, 0.01);
}

TEST(ForecastTest, AFileTierServesWhatMemoryDoesNotHold) {
  Scene scene;
  for (unsigned pass = 0; pass < 10; ++pass) scene.read_apart(100);
  Plan plan = plan_with(50 * kBlock);
  DeviceSpeed tier = slow_store();
  tier.read_latency = 0.5e-3;
  tier.read_bandwidth = kBlock / 0.5e-3;
  plan.tiers = {
      {.name = "nvme", .directory = "/d", .bytes = 64 * kMib, .is_durable = false, .speed = tier}};
  // 100 first uses of 2 ms, and 900 from the tier of 1 ms.
  EXPECT_NEAR(forecast_with(scene.workload(), machine_of_test(), plan).seconds(), 0.2 + 0.9, 0.01);
}

TEST(ForecastTest, WhatIsReadInOrderIsFetchedWhileTheProgramComputes) {
  Scene scene;
  // 1024 blocks in order, 1.024 s of the store and 64 requests; 2 ms between them.
  for (unsigned block = 0; block < 1024; ++block) scene.access(block, false, 2e-3 * block);
  const Workload work = scene.workload();
  const double without = forecast_without(work, machine_of_test()).seconds();
  EXPECT_NEAR(without, 1.024 + 64 * 1e-3, 0.01);
  EXPECT_NEAR(compute_seconds(work, machine_of_test()), 2.046 - without, 0.01);
  EXPECT_LT(forecast_with(work, machine_of_test(), plan_with(64 * kMib)).seconds(), 0.15 * without);
  Plan none = plan_with(64 * kMib);
  none.prefetch_percent = 0;
  EXPECT_NEAR(forecast_with(work, machine_of_test(), none).seconds(), without, 0.01);
}

// Requests of `blocks` that do not adjoin, in an order that nobody knows: each block once, and 2 ms
// for each.
Scene shuffled_requests(unsigned requests, unsigned blocks) {
  Scene scene;
  constexpr std::uint64_t kStep = 37;
  for (unsigned number = 0; number < requests; ++number)
    scene.access(number * kStep % requests * (blocks + 1), false, 2e-3 * blocks * number,
                 blocks * 65536);
  return scene;
}

TEST(ForecastTest, NobodyFetchesAheadWhatALargeRequestElsewhereHas) {
  const Workload work = shuffled_requests(128, 8).workload();
  const Machine machine = machine_of_test();
  // 1 ms for the first byte of each request, and 1 ms for each block.
  const double without = forecast_without(work, machine).seconds();
  EXPECT_NEAR(without, 128 * (1e-3 + 8e-3), 0.001);
  // Cairn asks for a block at a time; the kernel sees that they are in order at the second one.
  EXPECT_NEAR(forecast_with(work, machine, plan_with(64 * kMib)).seconds(), 128 * (2e-3 + 8e-3),
              0.001);
}

TEST(ForecastTest, ARequestBeyondAMebibyteIsSeveralToTheStore) {
  const Workload work = shuffled_requests(64, 32).workload();
  EXPECT_NEAR(forecast_without(work, machine_of_test()).seconds(), 64 * (2e-3 + 32e-3), 0.001);
}

TEST(AdviceTest, AShuffleOfLargeRequestsIsInNoOrder) {
  const Workload work = shuffled_requests(128, 8).workload();
  const Advice advice = advise(work, machine_of_test(), wishes_of_test());
  EXPECT_EQ(advice.verdict, Verdict::kDoNotUse);
  EXPECT_EQ(advice.refusal, Refusal::kReadOnce);
  EXPECT_EQ(advice.advised().plan.prefetch_percent, 0);
}

TEST(ForecastTest, AMissOfAFewBytesBringsTheWholeBlock) {
  Scene scene;
  for (unsigned block = 0; block < 100; ++block) scene.access(2ULL * block, false, 0, 4096);
  const Workload work = scene.workload();
  // 1 ms and 1/16 ms each; 1 ms and 1 ms with Cairn.
  EXPECT_NEAR(forecast_without(work, machine_of_test()).seconds(), 0.10625, 0.001);
  EXPECT_NEAR(forecast_with(work, machine_of_test(), plan_with(64 * kMib)).seconds(), 0.2, 0.002);
}

TEST(ForecastTest, IntervalsFollowTheErrorsOfTheDevices) {
  Scene scene;
  scene.read_apart(100);
  Machine machine = machine_of_test();
  machine.store.error = 2;
  const Forecast forecast = forecast_without(scene.workload(), machine);
  EXPECT_NEAR(forecast.interval.low, forecast.seconds() / 2, 0.001);
  EXPECT_NEAR(forecast.interval.high, forecast.seconds() * 2, 0.001);
}

TEST(ForecastTest, ReadsOfWhatTheProgramHasWrittenAreHits) {
  Scene scene;
  for (unsigned block = 0; block < 100; ++block) scene.access(2ULL * block, true, 0);
  scene.read_apart(100);
  EXPECT_EQ(forecast_with(scene.workload(), machine_of_test(), plan_with(64 * kMib)).miss_ratio, 0);
}

TEST(AdviceTest, ARepeatedReadGetsMemoryForItsWorkingSet) {
  Scene scene;
  for (unsigned pass = 0; pass < 10; ++pass) scene.read_apart(4000);
  const Advice advice = advise(scene.workload(), machine_of_test(), wishes_of_test());
  EXPECT_EQ(advice.verdict, Verdict::kHelps);
  EXPECT_GE(advice.advised().plan.ram_bytes, 4000 * kBlock);
  EXPECT_LE(advice.advised().plan.ram_bytes, 1.2 * 4000 * kBlock);
  EXPECT_EQ(advice.sizes.knee_bytes, 4000 * kBlock);
}

TEST(AdviceTest, WhatIsReadOnceAtRandomIsNoCaseForCairn) {
  Scene scene;
  scene.read_apart(4000);
  const Advice advice = advise(scene.workload(), machine_of_test(), wishes_of_test());
  EXPECT_EQ(advice.verdict, Verdict::kDoNotUse);
  EXPECT_EQ(advice.refusal, Refusal::kReadOnce);
  EXPECT_FALSE(advice.sizes.knee_bytes.has_value());
}

TEST(AdviceTest, WhatIsReadAgainAtOnceIsNotReadOnce) {
  Scene scene;
  for (unsigned block = 0; block < 200; ++block) {
    for (int pass = 0; pass < 5; ++pass) scene.access(2ULL * block, false, 0);
  }
  const Advice advice = advise(scene.workload(), machine_of_test(), wishes_of_test());
  EXPECT_EQ(advice.verdict, Verdict::kDoNotUse);
  EXPECT_NE(advice.refusal, Refusal::kReadOnce);
}

TEST(AdviceTest, NoMoreMemoryIsProposedThanThereIs) {
  Machine machine = machine_of_test();
  machine.memory_bytes_max = 16 * kMib;
  Scene scene;
  for (int pass = 0; pass < 5; ++pass) scene.read_apart(2000);
  const Advice advice = advise(scene.workload(), machine, wishes_of_test());
  for (const Candidate& candidate : advice.candidates)
    EXPECT_LE(candidate.plan.ram_bytes, machine.memory_bytes_max) << candidate.plan.name;
}

TEST(AdviceTest, TheKernelKeepsASmallFileAsWell) {
  Scene scene;
  for (unsigned pass = 0; pass < 10; ++pass) scene.read_apart(100);
  Machine machine = machine_of_test();
  machine.page_cache_bytes = 1024 * kMib;
  EXPECT_EQ(advise(scene.workload(), machine, wishes_of_test()).refusal, Refusal::kKernelCache);
}

TEST(AdviceTest, AFastStoreNeedsNoTier) {
  Scene scene;
  for (unsigned pass = 0; pass < 10; ++pass) scene.read_apart(100);
  Machine machine = machine_of_test();
  machine.store = instant();
  EXPECT_EQ(advise(scene.workload(), machine, wishes_of_test()).refusal, Refusal::kFastStore);
}

TEST(AdviceTest, FsyncsAreTheLimitAndADurableTierHelps) {
  Scene scene;
  for (unsigned block = 0; block < 100; ++block) scene.access(2ULL * block, true, 0.1 * block);
  Workload work = scene.workload();
  work.accesses.fsyncs = 1000;
  const Advice advice = advise(work, machine_of_test(), wishes_of_test());
  EXPECT_EQ(advice.limit, Limit::kFsyncs);
  EXPECT_NEAR(advice.store_fsync_seconds, 1.0, 1e-9);
  const auto durable =
      std::ranges::find(advice.improvements, Improvement::kDurableTier, &Improved::what);
  ASSERT_NE(durable, advice.improvements.end());
  EXPECT_NEAR(durable->seconds, 1.0, 0.01);
}

TEST(AdviceTest, WhereItIsAdvisedAgainstATierThatHelpsIsAWayToHelp) {
  Scene scene;
  scene.access(0, true, 0);
  for (unsigned block = 500; block < 900; ++block) scene.access(2ULL * block, false, 10);
  Workload work = scene.workload();
  work.accesses.fsyncs = 1000;
  Advice advice = advise(work, machine_of_test(), wishes_of_test());
  ASSERT_EQ(advice.verdict, Verdict::kDoNotUse);
  ASSERT_NE(advice.way_to_help(), nullptr);
  EXPECT_EQ(advice.way_to_help()->what, Improvement::kDurableTier);
  EXPECT_GT(advice.way_to_help()->seconds, 0.4 * advice.without.seconds());
  EXPECT_EQ(advice.limit, Limit::kFsyncs) << "of what is left without Cairn";
  work.accesses.fsyncs = 0;
  advice = advise(work, machine_of_test(), wishes_of_test());
  EXPECT_EQ(advice.verdict, Verdict::kDoNotUse);
  EXPECT_EQ(advice.way_to_help(), nullptr);
}

TEST(AdviceTest, TheTargetIsTheLeastMemoryThatReachesIt) {
  Scene scene;
  for (unsigned pass = 0; pass < 10; ++pass) scene.read_apart(4000);
  Wishes wishes = wishes_of_test();
  wishes.target_share = 0.2;
  const Workload work = scene.workload();
  const Sizes sizes = sizes_of(work, machine_of_test(), wishes);
  ASSERT_TRUE(sizes.target_bytes.has_value());
  const double without = forecast_without(work, machine_of_test()).seconds();
  EXPECT_LE(forecast_with(work, machine_of_test(), plan_with(*sizes.target_bytes)).seconds(),
            0.2 * without);
  EXPECT_GT(forecast_with(work, machine_of_test(), plan_with(*sizes.target_bytes / 1.2)).seconds(),
            0.2 * without);
  wishes.target_share = 0.01;
  EXPECT_FALSE(sizes_of(work, machine_of_test(), wishes).target_bytes.has_value());
}

// A request after a pause takes a tenth of what the limit leaves.
DeviceSpeed limited_store() {
  DeviceSpeed store = slow_store();
  store.read_idle_latency = store.write_idle_latency = 0.1e-3;
  store.sync_latency = 4e-3;
  return store;
}

TEST(DeviceSpeedTest, FsyncsTakeAsLongAsRecordedButNoLessThanASmallWrite) {
  DeviceSpeed store = limited_store();
  EXPECT_NEAR(store.own_fsync_seconds(), 4e-3, 1e-12);
  store.recorded_sync_latency = 0.1e-3;  // of a log elsewhere
  EXPECT_NEAR(store.own_fsync_seconds(), 4e-3, 1e-12);
  store.recorded_sync_latency = 15e-3;
  EXPECT_NEAR(store.own_fsync_seconds(), 15e-3, 1e-12);
  EXPECT_NEAR(store.slowed(2).own_fsync_seconds(), 30e-3, 1e-12);
  EXPECT_NEAR(store.fsync_seconds(), 4e-3, 1e-12);  // of writes that are durable by themselves

  Scene scene;
  for (unsigned block = 0; block < 100; ++block) scene.access(2ULL * block, true, 0.1 * block);
  Workload work = scene.workload();
  work.accesses.fsyncs = 10;
  Machine machine = machine_of_test();
  const double before = forecast_without(work, machine).parts.fsyncs;
  machine.store.recorded_sync_latency = 3 * machine.store.fsync_seconds();
  EXPECT_NEAR(forecast_without(work, machine).parts.fsyncs, 3 * before, 1e-9);
}

TEST(DeviceSpeedTest, ALimitOfRequestsHidesTheirBytesAndPausesHideTheLimit) {
  const DeviceSpeed limited = limited_store();
  EXPECT_FALSE(slow_store().is_limited(Direction::kRead));
  ASSERT_TRUE(limited.is_limited(Direction::kRead));
  const DeviceLoad load{.direction = Direction::kRead, .requests = 1000, .bytes = 100 * kBlock};
  EXPECT_DOUBLE_EQ(seconds_of(slow_store(), load), 1 + 0.1);
  EXPECT_DOUBLE_EQ(seconds_of(limited, load), 1) << "the limit, and not the bytes as well";
  EXPECT_DOUBLE_EQ(waited_seconds(slow_store(), load, 0.4), 1.1);
  EXPECT_DOUBLE_EQ(waited_seconds(limited, load, 0.4), 0.6);
  EXPECT_DOUBLE_EQ(waited_seconds(limited, load, 5), 0.1) << "each takes its time all the same";
}

TEST(ForecastTest, TheKernelTakesWhatItsLimitSaysBeforeProgramsWait) {
  Scene scene;
  for (unsigned block = 0; block < 1000; ++block) scene.access(block, true, 0);
  Machine machine = machine_of_test();
  machine.page_cache_bytes = 1e12;
  EXPECT_NEAR(forecast_without(scene.workload(), machine).parts.store_writes, 0, 1e-9);
  machine.dirty_bytes_max = 400 * kBlock;
  machine.store = limited_store();
  // From three quarters of the limit on; a block takes 1 ms.
  EXPECT_NEAR(forecast_without(scene.workload(), machine).parts.store_writes, 0.7, 0.01);
}

TEST(ForecastTest, WritingThroughTakesAnFsyncForEachWrite) {
  Scene scene;
  for (unsigned block = 0; block < 100; ++block) scene.access(block, true, 0.001 * block);
  Machine machine = machine_of_test();
  machine.store = limited_store();
  Workload work = scene.workload();
  work.accesses.run_io_seconds = work.accesses.seconds;  // it computes nothing
  Plan plan = plan_with(1e9);
  plan.mode = "persistent-sync";
  // And one for the name; the device begins rested, which is worth 0.1 s.
  EXPECT_NEAR(forecast_with(work, machine, plan).parts.store_writes, 101 * 4e-3 + 0.1 - 0.1, 1e-9);
  EXPECT_EQ(forecast_with(work, machine, plan).drain_seconds, 0);
  plan.mode = "scratch";
  EXPECT_EQ(forecast_with(work, machine, plan).parts.store_writes, 0);
}

TEST(ForecastTest, MemoryThatNobodyHadIsMadeOnce) {
  Scene scene;
  for (unsigned block = 0; block < 100; ++block) scene.access(block, true, 0);
  Machine machine = machine_of_test();
  machine.fresh_tier_bandwidth = kBlock / 1e-3;
  EXPECT_NEAR(forecast_with(scene.workload(), machine, plan_with(1e9)).parts.copies, 0.1, 1e-3);
  EXPECT_NEAR(forecast_with(scene.workload(), machine, plan_with(50 * kBlock)).parts.copies, 0.05,
              1e-3);
}

}  // namespace
}  // namespace cairn::advice
