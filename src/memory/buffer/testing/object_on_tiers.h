// SPDX-License-Identifier: Apache-2.0
// A node with one file, whose tiers have the sizes of a parameter, for tests of calls on an object.
//
// Thread safety: the test's own thread; others need an actor of their own. Ownership: owns the
// memory and the file.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "memory/backing/posix_backing.h"
#include "memory/buffer/block_access.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn::testing {

// How large the two tiers are.
struct Tiers {
  unsigned memory_slabs;
  unsigned file_slabs;
  Checksums checksums = Checksums::kMovement;
};

class ObjectOnTiers : public ::testing::TestWithParam<Tiers> {
 protected:
  void SetUp() override {
    fd_ = make_unnamed_file();
    ASSERT_GE(fd_, 0);
    MemoryShape shape;
    shape.tier_bytes[0] = GetParam().memory_slabs * kBlockBytes;
    shape.tier_bytes[1] = GetParam().file_slabs * kBlockBytes;
    shape.clients_max = 8;
    shape.checksums = static_cast<std::uint32_t>(GetParam().checksums);
    auto memory = NodeMemory::create(shape, {"", "/var/tmp"});
    ASSERT_TRUE(memory.is_ok()) << memory.status().message();
    memory_ = std::move(memory.value());
    service_.memory = &memory_;
    file_.emplace(fd_, O_RDWR);
    actor_ = make_actor();
    StoreStatus status;
    ASSERT_EQ(store_status(fd_, &status), 0);
    index_ = open_object(actor_, *file_, status, true);
    ASSERT_NE(index_, ObjectIndex::kNone);
    memory_.objects().at(index_).clear(kObjectUnlinked);
  }
  void TearDown() override {
    actor_.drop_leases();
    close(fd_);
  }

  Actor make_actor() {
    Actor actor;
    actor.memory = &memory_;
    actor.self = memory_.owners().current(2);
    actor.counters = &memory_.slot(2).shards[0];
    return actor;
  }
  ObjectAccess access() { return ObjectAccess{actor_, index_, *file_, service_}; }

  // A set of one statement about some of the file's blocks.
  std::uint8_t part(std::uint32_t first, std::uint32_t last, PartProperty property,
                    std::uint8_t value) {
    PartStatement statement;
    statement.first_block = first;
    statement.last_block = last;
    statement.property = property;
    statement.value = value;
    PartSet set;
    EXPECT_TRUE(set.add(memory_.rules().parts().add(statement)));
    return memory_.rules().parts().intern(set);
  }

  TierId tier_of(std::uint32_t number) {
    const auto block = static_cast<BlockNumber>(number);
    return memory_.tier_of(memory_.directory().find(index_, block));
  }

  int fd_ = -1;
  NodeMemory memory_;
  AcceptingService service_;
  std::optional<PosixBacking> file_;
  Actor actor_;
  ObjectIndex index_{};
};

// System calls of this process so far that moved bytes, as the kernel counts them (proc(5)).
struct Transfers {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;

  static Transfers now() {
    std::ifstream file("/proc/thread-self/io");
    Transfers transfers;
    for (std::string name; file >> name;) {
      if (name == "syscr:") file >> transfers.reads;
      if (name == "syscw:") file >> transfers.writes;
    }
    return transfers;
  }
};

}  // namespace cairn::testing
