// SPDX-License-Identifier: Apache-2.0
// A change of an object's bytes by this thread, for as long as it is in scope: from before the
// first byte until the object's times say so. Where its process dies in between, the service finds
// it (service/attachment/sweep.h), whether or not the process still has the file open.
//
// Two plain stores to a line that the thread writes anyway: a process is killed between two of its
// instructions, so what stood before the copy is seen. Where more threads have worked than a slot
// has shards, it may show none; then the service takes each file that the process may write. The
// same where a signal handler writes another object in the midst of a write, because the shard
// shows one.
//
// Thread safety: the actor's thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/buffer/object_io.h"
#include "memory/tiers/node_memory.h"

namespace cairn {

class WriteUnderWay {
 public:
  explicit WriteUnderWay(const ObjectAccess& access) : actor_(access.actor) {
    before_ = actor_.counters->writing.load(std::memory_order_relaxed);
    if (__builtin_expect(before_ != 0 && before_ != raw(access.index), 0))
      actor_.memory->slot(actor_.self.slot()).note_untold_write();
    actor_.counters->writing.store(raw(access.index), std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~WriteUnderWay() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    actor_.counters->writing.store(before_, std::memory_order_relaxed);
  }
  WriteUnderWay(const WriteUnderWay&) = delete;
  WriteUnderWay& operator=(const WriteUnderWay&) = delete;

 private:
  const Actor& actor_;
  std::uint32_t before_;
};

}  // namespace cairn
