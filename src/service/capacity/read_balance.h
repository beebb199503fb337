// SPDX-License-Identifier: Apache-2.0
// How much of what a file tier holds is read from the backing store instead, because the tier's
// device does all that it can while the store stands idle ("non-hierarchical caching": Wu et al.,
// "The storage hierarchy is not a hierarchy: optimizing caching on modern storage devices with
// Orthus", FAST 2021, section 4.2; its data admission has no part here: what is placed where is the
// policies').
//
// By trying: while the tier is saturated the share that goes around it is changed by a step, and
// changed further in the same direction as long as more is read in all. What brings nothing is
// taken back, and tried again after twice as long each time: a store that is too slow to help is
// hardly asked.
//
// It only decides: rates in, share out. Thread safety: none.
#pragma once

#include <cstdint>

namespace cairn::node {

class ReadBalance {
 public:
  // Shares are parts of this.
  static constexpr std::uint32_t kWhole = 256;
  static constexpr std::uint32_t kShareMax = kWhole / 4 * 3;
  static constexpr std::uint32_t kStep = kWhole / 16;
  // The share of its measured bandwidth from which on a device is saturated.
  static constexpr double kSaturated = 0.7;

  // Takes the reads since the last step in bytes per second, from the tier and around it. Returns
  // the share that is to go around it from now on. `bandwidth`: that of the tier's device, 0 if
  // unknown.
  std::uint32_t step(double from_tier, double around, double bandwidth);

 private:
  std::uint32_t give_up();

  std::uint32_t share_ = 0;
  double total_before_ = 0;
  bool is_rising_ = true;
  unsigned wait_ = 1;  // steps until it is tried again, and how many are left of them
  unsigned waits_left_ = 0;
};

}  // namespace cairn::node
