// SPDX-License-Identifier: Apache-2.0
// Another tier that fails, or transfers less than it was told to, at the calls that a test names
// (base/testing/fault_script.h), and whose power can be cut.
//
// Operations that somebody gives to the device itself (on_device()) pass it by.
//
// Thread safety: any thread. Ownership: borrows the other tier.
#pragma once

#include <optional>

#include "base/testing/fault_script.h"
#include "base/testing/unflushed_writes.h"
#include "memory/tiers/node_memory.h"
#include "memory/tiers/tier.h"

namespace cairn::testing {

enum class TierCall : std::uint8_t { kRead, kWrite };

class FaultyTier final : public Tier {
 public:
  explicit FaultyTier(const Tier& other) : other_(other) {}

  TierMedium medium() const override { return other_.medium(); }
  std::uint64_t capacity_bytes() const override { return other_.capacity_bytes(); }
  std::byte* address_of(TierExtent extent) const override { return other_.address_of(extent); }
  DevicePlace on_device(TierExtent extent) const override { return other_.on_device(extent); }
  bool keeps_sums() const override { return other_.keeps_sums(); }

  // As those of FaultyBacking. A short transfer of a tier is an error, as of every tier.
  void fail(TierCall call, int error, Calls calls = {}) {
    script_.fail(kind_of(call), error, calls);
  }
  void shorten(TierCall call, std::size_t bytes_max, Calls calls = {}) {
    script_.tear(kind_of(call), bytes_max, EIO, calls);
  }
  void delay(TierCall call, int delay_ms) { script_.delay(kind_of(call), delay_ms); }
  void hang(TierCall call, Calls calls = {}) { script_.hang(kind_of(call), calls); }
  void await_hanging(unsigned count) { script_.await_hanging(count); }
  void heal() { script_.heal(); }
  unsigned count(TierCall call) const { return script_.count(kind_of(call)); }

  // From now on a write is durable after the next flush(), and only then for sure.
  void begin_forgetting();
  void flush();
  // All that was not durable vanishes, in any part and any order.
  void cut_power(RandomSource& random);

 private:
  static unsigned kind_of(TierCall call) { return static_cast<unsigned>(call); }
  int do_read(TierExtent extent, std::span<const iovec> parts) const override;
  int do_write(TierExtent extent, std::span<const iovec> parts) const override;
  int put(TierExtent extent, std::span<const std::byte> bytes) const;
  std::vector<std::byte> content() const;

  struct Forgetting {
    std::vector<std::byte> durable;
    std::vector<UnflushedWrite> writes;
  };

  const Tier& other_;
  mutable FaultScript script_;
  mutable std::mutex mutex_;
  mutable std::optional<Forgetting> forgetting_;
};

// Stands in for a node's file tiers as long as it lives.
class TierStandIn {
 public:
  TierStandIn(NodeMemory& memory, const Tier& tier) : memory_(memory) { memory_.stand_in_ = &tier; }
  ~TierStandIn() { memory_.stand_in_ = nullptr; }
  TierStandIn(const TierStandIn&) = delete;
  TierStandIn& operator=(const TierStandIn&) = delete;

 private:
  NodeMemory& memory_;
};

}  // namespace cairn::testing
