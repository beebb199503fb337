// SPDX-License-Identifier: Apache-2.0
// The times of membership, and who coordinates.
//
// Why two nodes never serve the same thing: a member counts its lease from when it has *sent* the
// renewal, by its own clock, and stops serving after half of it. The coordinators count from when
// the renewal was *committed*, which is later, by theirs, and wait for all of it. So a member that
// is declared dead has stopped before, as long as no clock runs at less than half the rate of
// another. (3FS has the same rule: research/transport.md, 7.)
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <vector>

#include "base/cluster_ids.h"

namespace cairn::cluster {

struct LeaseTerms {
  std::int64_t renew_every_ns = 500'000'000;
  std::int64_t lease_ns = 5'000'000'000;
  // A new leader, and one that has slept, declares nobody dead before members could reach it:
  // three renewals to find it, and as many again.
  std::int64_t grace_ns = 3'000'000'000;
  // The period of tick(), of all state machines here.
  std::int64_t tick_ns = 50'000'000;
  // A leader that had no tick for so long has slept.
  std::int64_t sleep_ns = 1'000'000'000;
  std::uint32_t election_timeout_ms = 500;
  std::uint32_t heartbeat_ms = 100;

  std::int64_t serving_ns() const { return lease_ns / 2; }
};

// The first three hosts of the roster, or the first alone where there are fewer.
inline std::vector<NodeId> coordinators_of(std::uint32_t hosts) {
  if (hosts < 3) return {NodeId{1}};
  return {NodeId{1}, NodeId{2}, NodeId{3}};
}

}  // namespace cairn::cluster
