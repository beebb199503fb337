// SPDX-License-Identifier: Apache-2.0
// An open that comes late: between its look at the store and its look at the table of objects,
// other processes have written the file, stored it and closed it, and its record has been
// reclaimed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "memory/backing/posix_backing.h"
#include "memory/buffer/block_access.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

TEST(LateOpen, KnowsWhatWasStoredSinceItsLook) {
  NodeMemory memory = testing::make_memory(testing::memory_only(16 * testing::kMiB));
  Actor actor = testing::make_actor(memory);
  testing::AcceptingService service;
  service.memory = &memory;
  const int fd = testing::make_unnamed_file();
  PosixBacking file(fd, O_RDWR);
  StoreStatus early;
  ASSERT_EQ(store_status(fd, &early), 0);
  early.stamp.reclaims = memory.objects().reclaims();

  const std::string text(100'000, 't');
  const ObjectIndex first = open_object(actor, file, early, true);
  memory.objects().at(first).clear(kObjectUnlinked);
  const ObjectAccess access{actor, first, file, service};
  ASSERT_EQ(write_object(access, 0, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ASSERT_EQ(sync_object(access, false, nullptr), 0);
  ASSERT_EQ(drop_blocks(access, 0, UINT64_MAX, false, PlacementReason::kRemoved), 0);
  ASSERT_EQ(close_object(access, true), 0);
  memory.objects().at(first).clear(kObjectHandedOver);  // the service lets go of its descriptor
  ASSERT_TRUE(memory.objects().reclaim(first, actor.self, actor.owners()));

  const ObjectIndex late = open_object(actor, file, early, true);
  ASSERT_NE(late, ObjectIndex::kNone);
  const Object& object = memory.objects().at(late);
  EXPECT_EQ(object.size.load(), text.size());
  EXPECT_EQ(object.store_size.load(), text.size());
  std::string seen(text.size(), 0);
  const ObjectAccess again{actor, late, file, service};
  ASSERT_EQ(read_object(again, 0, seen.data(), seen.size()), static_cast<ssize_t>(seen.size()));
  EXPECT_EQ(seen, text);
  actor.drop_leases();
  close(fd);
}

}  // namespace
}  // namespace cairn
