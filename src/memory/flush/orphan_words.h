// SPDX-License-Identifier: Apache-2.0
// Words of programs that have outlived their node, in the folder of its durable log: the store has
// all of this file, durably, so what the log has of it up to then is void. Nobody else could say so
// when service and keeper are dead.
//
//   a surviving program   locks the words; stores all of a file by itself, and flushes it; says so
//                         (memory/buffer/object_lifecycle.h, leave_log)
//   recovery              locks them; heeds them; writes to the store; empties them
//
// The lock keeps one from storing newer bytes while the other puts older ones there. A word counts
// for records up to the last one that the node has placed, so it says nothing of what a later node
// logs on the same tier. Each word has a checksum: one that a crash has torn counts for nothing.
// The lock is one of fcntl(2): it ends with its process, and no child has it. A process that has
// waited for it in vain does not wait again for a minute.
//
// Thread safety: a lock belongs to its object; words are appended by any number of processes.
// Ownership: owns its descriptor.
#pragma once

#include <cstdint>

#include "base/signal_gate.h"
#include "memory/tiers/node_memory.h"

namespace cairn {

// As it stands in the file (docs/formats.md), in this machine's byte order.
struct OrphanWord {
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

class OrphanWords {
 public:
  static constexpr const char* kName = "orphaned";

  // More than these are no words of programs.
  static constexpr std::uint64_t kWordsMax = std::uint64_t{1} << 20;
  static constexpr unsigned kPatienceMs = 20'000;

  // Waits for the lock, at most `patience_ms`, and keeps signal handlers out. `folder`: of the log;
  // it may be missing.
  explicit OrphanWords(const char* folder, unsigned patience_ms = kPatienceMs);
  ~OrphanWords();
  OrphanWords(const OrphanWords&) = delete;
  OrphanWords& operator=(const OrphanWords&) = delete;

  bool is_locked() const { return fd_ >= 0; }
  // Why it is not locked: -errno; -EAGAIN: somebody else has it; -EBADF: no regular file, or a file
  // that is too long, has the name.
  int error() const { return error_; }
  // Durably. 0 or -errno. Requires: the lock.
  int say(OrphanWord word) const;
  // Word `number`, or false behind the last one. It may be torn. Requires: the lock.
  bool read(std::uint64_t number, OrphanWord* word) const;
  // Forgets all of them. 0 or -errno. Requires: the lock.
  int clear() const;

 private:
  int open(const char* folder);

  const SignalGateGuard gate_;  // a handler would wait for its own thread
  int fd_ = -1;
  int error_ = 0;
};

// Nobody serves the node any more, and its log may have records of the object that recovery would
// heed. Also where Object::is_in_log() says no: the word that they are void may not be durable.
bool may_be_left_in_log(const NodeMemory& memory, ObjectIndex object);

// Says that the store has all of the object, or that the file is gone. 0 or -errno. Requires: the
// lock; nobody serves the node.
int void_in_log(const NodeMemory& memory, const OrphanWords& words, ObjectIndex object);

}  // namespace cairn
