// SPDX-License-Identifier: Apache-2.0
// Many direct writes to pool files at once: how blocks move down to a file tier.
//
// Thread safety: one thread at a time per writer. Ownership: the buffers stay the caller's until
// write_all() returns.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/tiers/tier.h"

namespace cairn {

struct BatchWrite {
  static constexpr int kInFlight = 1;

  TierPlace place;               // whole pages, like the parts
  std::span<const iovec> parts;  // together as long as the place
  int result = 0;                // kInFlight once started, 0 or -errno after wait()
};

class BatchWriter {
 public:
  // Gives the writes to their devices. They, and the bytes, stay where they are until wait().
  virtual void start(std::span<BatchWrite> writes) = 0;
  // Returns when each of these writes, all started, is done or has failed.
  virtual void wait(std::span<BatchWrite> /*writes*/) {}

  void write_all(std::span<BatchWrite> writes) {
    start(writes);
    wait(writes);
  }

 protected:
  ~BatchWriter() = default;
};

// One write after the other: for kernels and containers without io_uring, and for tests.
class PlainBatchWriter final : public BatchWriter {
 public:
  void start(std::span<BatchWrite> writes) override {
    for (BatchWrite& write : writes) {
      write.result = write.place.tier->write_parts(write.place.extent, write.parts);
    }
  }
};

}  // namespace cairn
