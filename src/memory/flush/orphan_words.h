// SPDX-License-Identifier: Apache-2.0
// Words of programs that have outlived their node, in the folder of its durable log: the store has
// all of this file, durably, so what the log has of it up to then is void. Nobody else could say so
// when service and keeper are dead; and beside a service that leaves, or a rescue, nobody answers.
//
//   a surviving program   stores all of a file by itself, and flushes it; says so
//                         (memory/buffer/object_lifecycle.h, leave_log)
//   recovery              begins when no such program lives any more
//                         (service/durable_log/left_programs.h); heeds the words; forgets them
//
// A word counts for records up to the last one that the node has placed, so it says nothing of what
// a later node logs on the same tier. Each has a checksum: one that a crash has torn counts for
// nothing, and the next one may begin anywhere behind it.
//
// Thread safety: any thread of any process.
#pragma once

#include <cstdint>

#include "memory/tiers/node_memory.h"

namespace cairn {

// As it stands in the file (docs/formats.md), in this machine's byte order.
struct OrphanWord {
  static constexpr const char* kFileName = "orphaned";  // of all words, in the log's folder
  static constexpr std::uint64_t kMagic = 0x0d0a'6472'6f57'4389ULL;

  std::uint64_t magic = kMagic;
  std::uint64_t log = 0;   // its identity
  std::uint64_t upto = 0;  // the number of the last record that is void
  std::uint64_t store = 0;
  std::uint64_t inode = 0;
  std::uint64_t birth_ns = 0;
  std::uint64_t zero = 0;
  std::uint64_t sum = 0;  // of the words before it

  static std::uint64_t sum_of(const OrphanWord& word);
  bool is_whole() const { return magic == kMagic && zero == 0 && sum == sum_of(*this); }
  bool is_of(const ObjectKey& key) const;
};
static_assert(sizeof(OrphanWord) == 64);

// Adds the word to those in the log's folder, durably. 0 or -errno; -EBADF: something else has the
// name of the file.
int say_in(const char* folder, OrphanWord word);

// Nobody serves the node any more, and its log may have records of the object that recovery would
// heed. Also where Object::is_in_log() says no: the word that they are void may not be durable.
bool may_be_left_in_log(const NodeMemory& memory, ObjectIndex object);

// Says that the store has all of the object, or that the file is gone. 0 or -errno. Requires:
// nobody serves the node.
int void_in_log(const NodeMemory& memory, ObjectIndex object);

}  // namespace cairn
