// SPDX-License-Identifier: Apache-2.0
// A node's memory for a test, with pool files that have no names any more, and somebody at work on
// it.
//
// Thread safety: as what they make. Ownership: the actor borrows the memory.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <utility>

#include "memory/tiers/actor.h"

namespace cairn::testing {

inline constexpr std::uint64_t kMiB = 1 << 20;

// A small node's: RAM only.
inline MemoryShape memory_only(std::uint64_t bytes) {
  MemoryShape shape;
  shape.tier_bytes[0] = bytes;
  shape.clients_max = 8;
  shape.objects_max = 64;
  return shape;
}

// An empty file on a disk, open for reading and writing, that has no name any more.
inline int make_unnamed_file() {
  char path[] = "/var/tmp/cairn-test-file-XXXXXX";
  const int descriptor = ::mkstemp(path);
  EXPECT_GE(descriptor, 0);
  if (descriptor >= 0) ::unlink(path);
  return descriptor;
}

// Its pool files lie in /tmp, without a name.
inline NodeMemory make_memory(const MemoryShape& shape) {
  std::array<std::string, kTiersMax> directories;
  directories.fill("/tmp");
  auto memory = NodeMemory::create(shape, directories);
  EXPECT_TRUE(memory.is_ok()) << memory.status().message();
  return memory.is_ok() ? std::move(memory.value()) : NodeMemory();
}

// For the client in slot 1.
inline Actor make_actor(NodeMemory& memory) {
  Actor actor;
  actor.memory = &memory;
  actor.self = memory.owners().current(1);
  actor.counters = &memory.slot(1).shards[0];
  return actor;
}

inline ObjectIndex make_object(const Actor& actor, const ObjectKey& key) {
  Acquisition how;
  const ObjectIndex object =
      actor.memory->objects().acquire(key, StoreStamp{}, actor.self, actor.memory->owners(), &how);
  EXPECT_TRUE(how.is_new);
  return object;
}

}  // namespace cairn::testing
