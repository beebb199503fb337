// SPDX-License-Identifier: Apache-2.0
// Batched direct writes to pool files by io_uring: whole batches are in flight at once, one system
// call submits each.
//
// A device hangs that ends no write within the writer's patience and a second more, which is for a
// process that was stopped meanwhile: its writes have failed (-ETIMEDOUT), and nobody asks its tier
// again. The kernel keeps their ring and may still read the bytes; it would put them into buckets
// of a tier that leaves service.
//
// Thread safety: one thread at a time. Ownership: owns the ring.
#pragma once

#include <chrono>
#include <memory>

#include "memory/tiers/batch_writer.h"

namespace cairn {

class UringWriter final : public BatchWriter {
 public:
  static constexpr unsigned kDepth = 64;  // writes in flight; more wait for the first of them

  static constexpr std::chrono::milliseconds kPatience{15'000};

  UringWriter();
  explicit UringWriter(std::chrono::milliseconds patience);
  ~UringWriter();
  UringWriter(const UringWriter&) = delete;
  UringWriter& operator=(const UringWriter&) = delete;

  // False where the kernel or a container's filter has no io_uring; writes then go one by one.
  bool has_ring() const { return ring_ != nullptr; }
  void start(std::span<BatchWrite> writes) override;
  void wait(std::span<BatchWrite> writes) override;

 private:
  struct Ring;
  void submit();
  void reap_one();
  void abandon();

  const std::chrono::milliseconds patience_;
  std::unique_ptr<Ring> ring_;
  PlainBatchWriter plain_;
};

}  // namespace cairn
