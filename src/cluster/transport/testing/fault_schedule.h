// SPDX-License-Identifier: Apache-2.0
// Faults of a simulated network at times that a seed chooses, each with its end.
//
// A fault is picked among those that the mix has any of, strikes after a pause of up to
// `period_ns`, and ends after up to `duration_ns`. At `quiet_ns` all ends: every host runs, every
// link works and every clock is right from then on, so that a test can ask for recovery.
//
// Thread safety: none. Ownership: the network outlives its events.
#pragma once

#include "cluster/transport/testing/simulated_network.h"

namespace cairn::cluster {

struct FaultMix {
  // How often each is chosen, against the others.
  std::uint32_t crashes = 0;
  std::uint32_t pauses = 0;
  std::uint32_t partitions = 0;     // some hosts from all others, both ways
  std::uint32_t one_way_cuts = 0;   // one host hears nothing of another, or of all
  std::uint32_t clock_changes = 0;  // by up to clock_ppm_max either way
  std::uint32_t bad_links = 0;      // LinkFaults with drops, repeats, damage and lateness
  std::int32_t clock_ppm_max = 100'000;
  std::int64_t period_ns = 4 * kSecond;
  std::int64_t duration_ns = 12 * kSecond;
  std::int64_t quiet_ns = 60 * kSecond;
};

// All kinds, equally often.
FaultMix all_faults();

void schedule_faults(SimulatedNetwork& network, const FaultMix& mix);

}  // namespace cairn::cluster
