// SPDX-License-Identifier: Apache-2.0
// A node with one file that a client writes, and a service that stops wherever a test wants, for
// tests of what its successor finds.
//
// Thread safety: the test's own thread; others need an actor of their own. Ownership: owns the
// memory and the file.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "memory/backing/posix_backing.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/catalog/testing/block_probe.h"
#include "memory/tiers/memory_map.h"
#include "memory/tiers/testing/test_memory.h"
#include "service/recovery/takeover.h"

namespace cairn::node::testing {

class LeftMemory : public ::testing::Test {
 protected:
  static constexpr std::uint16_t kClient = 2;
  static constexpr std::uint32_t kSlabs = 16;
  static constexpr std::uint32_t kFileSlabs = 8;

  void SetUp() override {
    MemoryShape shape;
    shape.tier_bytes[0] = kSlabs * kBlockBytes;
    shape.tier_bytes[1] = kFileSlabs * kBlockBytes;
    shape.clients_max = 8;
    shape.objects_max = 64;
    auto memory = NodeMemory::create(shape, {"", "/var/tmp"});
    ASSERT_TRUE(memory.is_ok()) << memory.status().message();
    memory_ = std::move(memory.value());
    fd_ = cairn::testing::make_unnamed_file();
    file_ = std::make_unique<PosixBacking>(fd_, O_RDWR);
    accepts_.memory = &memory_;
    client_ = actor_of(memory_.owners().current(kClient));
    StoreStatus status;
    ASSERT_EQ(store_status(fd_, &status), 0);
    index_ = open_object(client_, *file_, status, true);
    ASSERT_NE(index_, ObjectIndex::kNone);
    object().clear(kObjectUnlinked);
  }
  void TearDown() override {
    client_.drop_leases();
    ::close(fd_);
  }

  Actor actor_of(Owner self) {
    Actor actor;
    actor.memory = &memory_;
    actor.self = self;
    actor.counters = &memory_.slot(self.slot()).shards[0];
    // As the service does it that gives the slot away.
    memory_.slot(self.slot()).pid.store(::getpid());
    return actor;
  }
  Owner service() const { return memory_.owners().current(ClientSlot::kOfService); }
  Object& object() { return memory_.objects().at(index_); }
  ObjectAccess access_of(Actor& actor) { return {actor, index_, *file_, accepts_}; }

  void write(std::uint32_t number, char letter) {
    const std::string bytes(kBlockBytes, letter);
    ASSERT_EQ(write_object(access_of(client_), offset_of(BlockNumber{number}), bytes.data(),
                           bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  bool reads(std::uint32_t number, char letter) {
    std::string bytes(kBlockBytes, '?');
    return read_object(access_of(client_), offset_of(BlockNumber{number}), bytes.data(),
                       bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
           bytes == std::string(kBlockBytes, letter);
  }
  BucketIndex bucket(std::uint32_t number) {
    return memory_.directory().find(index_, BlockNumber{number});
  }
  BlockDescriptor& block(std::uint32_t number) { return memory_.block(bucket(number)); }
  bool is_in_dirty_map(BucketIndex wanted) {
    bool is_there = false;
    memory_.for_each_maybe_dirty(
        [&](BucketIndex found) { is_there = is_there || found == wanted; });
    return is_there;
  }
  BucketPool& pool() { return memory_.pool(TierId::kMemory); }
  // The words that no function shows.
  template <typename Element>
  Element* table(Table table) {
    return MemoryMap(memory_.shape()).find<Element>(memory_.control().base(), table);
  }
  std::uint32_t count_of(Table table) { return MemoryMap(memory_.shape()).count_of(table); }

  Takeover taken_over() {
    auto taken = take_over(memory_);
    EXPECT_TRUE(taken.is_ok()) << taken.status().message();
    return taken.is_ok() ? std::move(taken.value()) : Takeover();
  }

  NodeMemory memory_;
  cairn::testing::AcceptingService accepts_;
  std::unique_ptr<PosixBacking> file_;
  Actor client_;
  ObjectIndex index_{};
  int fd_ = -1;
};

}  // namespace cairn::node::testing
