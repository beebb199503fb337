// SPDX-License-Identifier: Apache-2.0
// Lets reads go around file tiers that are saturated, as much as read_balance.h decides for each:
// looks at what was read ten times a second while programs read from file tiers, woken by what they
// tell about it, and not at all otherwise.
//
// Thread safety: on_accesses() by one thread. Ownership: borrows the memory and the clients.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>

#include "service/attachment/client_table.h"
#include "service/capacity/read_balance.h"
#include "service/learning/access_observer.h"

namespace cairn::node {

class ReadBalancer final : public AccessObserver {
 public:
  // Bytes per second that are read from a tier's device at most; 0 if nobody knows.
  using BandwidthOf = std::function<double(unsigned tier)>;

  ReadBalancer(const NodeMemory& memory, const ClientTable& clients, BandwidthOf bandwidth_of)
      : memory_(memory), clients_(clients), bandwidth_of_(std::move(bandwidth_of)) {}

  void on_accesses(std::span<const ToldAccess> batch) override;

 private:
  void step(double seconds);

  const NodeMemory& memory_;
  const ClientTable& clients_;
  const BandwidthOf bandwidth_of_;
  std::array<ReadBalance, kTiersMax> balances_;
  CounterSums before_{};
  std::int64_t looked_ns_ = 0;
};

}  // namespace cairn::node
