// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/audit.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <iterator>
#include <string>
#include <thread>

#include "memory/backing/posix_backing.h"
#include "memory/buffer/kernel_use.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/tiers/testing/test_memory.h"
#include "service/attachment/reaper.h"

namespace cairn::node {
namespace {

// The process of the first image executes another program, which never attaches.
class AuditTest : public ::testing::Test {
 protected:
  AuditTest() { budget_.measure(); }

  Owner attach(pid_t pid) {
    ClientInfo client;
    client.pid = pid;
    client.run = 1;
    protocol::UnservedReason why{};
    return clients_.attach(client, &why).value_or(Owner());
  }
  // Opened once, and counted once more by somebody who died between counting and opening.
  ObjectIndex counted_twice(std::uint64_t inode) {
    const ObjectIndex object = testing::make_object(actor_, file_key(1, inode, 1));
    memory_.objects().at(object).opens.store(2);
    memory_.objects().at(object).writers.store(2);
    return object;
  }
  const Object& object(ObjectIndex index) const { return memory_.objects().at(index); }

  NodeMemory memory_ = testing::make_memory(testing::memory_only(4 * kBlockBytes));
  KeptMemory kept_ = std::move(KeptMemory::create().value());
  DescriptorBudget budget_{memory_};
  ClientTable clients_{memory_, budget_, kept_};
  StoreFiles files_{memory_};
  Flusher flusher_{memory_, files_, clients_.service(), FlushOptions(), nullptr};
  UnservedFiles unserved_{memory_, flusher_, clients_.service(), kept_};
  std::shared_mutex fetches_;
  Audit audit_{memory_, clients_, unserved_, [] { return true; },
               [this] { return Audit::Stillness(fetches_); }};
  Actor actor_ = testing::make_actor(memory_);
};

TEST_F(AuditTest, WhatReplacedImagesHoldStaysOpenAndTheRestIsCorrected) {
  const Owner image = attach(100);
  const Owner other = attach(101);
  const ObjectIndex held = counted_twice(7);
  const ObjectIndex left = counted_twice(8);
  const DescriptionIndex description = memory_.descriptions().create(held, O_RDWR);
  ASSERT_NE(memory_.descriptions().hold(description, image, HoldKind::kDescription),
            HoldIndex::kNone);
  memory_.objects().at(left).through.store(1);
  memory_.objects().at(held).through.store(2);
  ASSERT_NE(memory_.descriptions().hold_through(held, image), HoldIndex::kNone);

  const std::vector<Owner> replaced{clients_.declare_dead(image.slot(), Departure::kExeced)};
  EXPECT_EQ(audit_.run(actor_, replaced), Audit::Outcome::kLater) << "another one is attached";
  EXPECT_EQ(object(left).opens.load(), 2u);
  (void)clients_.declare_dead(other.slot(), Departure::kDied);
  EXPECT_EQ(audit_.run(actor_, replaced), Audit::Outcome::kLater) << "it is not swept yet";
  clients_.release(other.slot());

  EXPECT_EQ(audit_.run(actor_, replaced), Audit::Outcome::kDone);
  EXPECT_EQ(object(held).opens.load(), 1u);
  EXPECT_EQ(object(held).writers.load(), 1u);
  EXPECT_EQ(object(held).through.load(), 1u | kThroughAbandoned) << "its size is not known";
  EXPECT_TRUE(memory_.descriptions().is_held(description, held));
  EXPECT_EQ(object(left).opens.load(), 0u);
  EXPECT_EQ(object(left).writers.load(), 0u);
  EXPECT_EQ(object(left).through.load(), 0u);

  // The holds go with the image, and nothing is left.
  clients_.release(image.slot());
  EXPECT_EQ(audit_.run(actor_, {}), Audit::Outcome::kDone);
  EXPECT_EQ(object(held).opens.load(), 0u);
  EXPECT_FALSE(memory_.descriptions().is_held(description, held));
}

TEST_F(AuditTest, AnAbandonedFileThatAReplacedImageHasOpenStaysAbandoned) {
  const Owner image = attach(100);
  const ObjectIndex held = testing::make_object(actor_, file_key(1, 7, 1));
  const DescriptionIndex description = memory_.descriptions().create(held, O_RDWR);
  ASSERT_NE(memory_.descriptions().hold(description, image, HoldKind::kDescription),
            HoldIndex::kNone);
  // A process that had the file in through mode has died: nobody knows its size.
  memory_.objects().at(held).through.store(1);
  abandon_through(actor_, held);
  ASSERT_TRUE(is_through_abandoned(object(held)));
  const std::vector<Owner> replaced{clients_.declare_dead(image.slot(), Departure::kExeced)};
  EXPECT_EQ(audit_.run(actor_, replaced), Audit::Outcome::kDone);
  EXPECT_EQ(object(held).opens.load(), 1u);
  EXPECT_TRUE(is_through_abandoned(object(held))) << "the next program would believe the old size";
}

TEST_F(AuditTest, AnAbandonedFileThatNobodyHasOpenIsAbandonedNoLonger) {
  const ObjectIndex left = testing::make_object(actor_, file_key(1, 8, 1));
  memory_.objects().at(left).through.store(kThroughAbandoned);
  EXPECT_EQ(audit_.run(actor_, {}), Audit::Outcome::kDone);
  EXPECT_EQ(object(left).through.load(), 0u);
}

TEST_F(AuditTest, AnOpenThatEndedWithItsImageIsTakenBackOnce) {
  const Owner image = attach(100);
  // One of its threads was in open() when another one executed a program.
  memory_.slot(image.slot()).openings.store(1);
  memory_.service_board().openings.store(1);
  const std::vector<Owner> replaced{clients_.declare_dead(image.slot(), Departure::kExeced)};
  EXPECT_EQ(audit_.run(actor_, replaced), Audit::Outcome::kDone);
  EXPECT_EQ(memory_.service_board().openings.load(), 0u);
  clients_.release(image.slot());
  EXPECT_EQ(memory_.service_board().openings.load(), 0u);
}

// Somebody died between the two counts of an opening. Another one removed a file meanwhile, which
// nobody had open, and kept its blocks for that opening.
TEST_F(AuditTest, AFileThatWasRemovedBesideAnOpeningThatNeverWasIsDropped) {
  const ObjectIndex gone = testing::make_object(actor_, file_key(1, 7, 1));
  testing::AcceptingService service;
  service.memory = &memory_;
  PosixBacking nothing;
  const std::string data(kBlockBytes, 'x');
  const ObjectAccess access{actor_, gone, nothing, service};
  ASSERT_EQ(write_object(access, 0, data.data(), data.size()), std::ssize(data));
  memory_.objects().at(gone).clear(kObjectHandedOver);  // the service has let go of it
  memory_.service_board().openings.store(1);
  unlink_object(actor_, gone);
  ASSERT_TRUE(object(gone).has(kObjectLive));
  ASSERT_NE(object(gone).blocks.load(), 0u);
  // Dirty as it is, it must not put the audit off.
  (void)audit_.run(actor_, {});
  EXPECT_FALSE(object(gone).has(kObjectLive));
  EXPECT_EQ(memory_.service_board().openings.load(), 0u);
  EXPECT_EQ(audit_.run(actor_, {}), Audit::Outcome::kDone);
}

TEST_F(AuditTest, AProgramThatNeverAttachesDoesNotPutItOff) {
  Reaper reaper(memory_, clients_, audit_, [](const SweepCounts&) {});
  reaper.start();
  const Owner image = attach(100);
  const ObjectIndex left = counted_twice(8);
  reaper.owe_audit();
  reaper.departed(clients_.declare_dead(image.slot(), Departure::kExeced),
                  AttachEvents::Departure::kExeced);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (reaper.owes_audit() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(reaper.owes_audit());
  EXPECT_EQ(object(left).opens.load(), 0u);
  EXPECT_EQ(clients_.busy_count(), 1u) << "its process is alive";

  reaper.inherited(image);
  EXPECT_TRUE(reaper.wait_until_idle(20'000));
  EXPECT_EQ(clients_.busy_count(), 0u);
  reaper.stop();
}

}  // namespace
}  // namespace cairn::node
