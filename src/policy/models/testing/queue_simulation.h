// SPDX-License-Identifier: Apache-2.0
// A discrete-event simulation of the stations and networks that policy/models/ computes: it shows
// whether the formulas are right, and how far the approximations are off.
//
// Requests are served first come, first served. A run begins with an empty station and leaves its
// first tenth out. The rest is cut into kSimulationBatches batches of equal size; the spread of
// their means gives the 95 % confidence interval of each measure (batch means: A. M. Law,
// "Simulation Modeling and Analysis", 5th edition, 2015, section 9.5.3).
//
// One seed gives one result. Units: seconds, requests per second. Thread safety: none; values.
#pragma once

#include <cstdint>
#include <random>

#include "policy/models/queueing_network.h"
#include "policy/models/queueing_station.h"

namespace cairn {

inline constexpr unsigned kSimulationBatches = 30;

// Independent times of a given mean and squared coefficient of variation (cv2):
//   0        deterministic
//   1/n      Erlang of n stages
//   1        exponential
//   above 1  hyperexponential of two phases with balanced means: each contributes half of the mean
//            (H. C. Tijms, "A First Course in Stochastic Models", 2003, appendix B)
class RandomTimes {
 public:
  // Requires: mean > 0; cv2 is 0, 1/n for a whole n, or above 1.
  RandomTimes(double mean, double cv2);
  double draw(std::mt19937_64& random) const;

 private:
  unsigned stages_ = 1;        // 0: deterministic
  double first_fraction_ = 1;  // how many of the times are of the first phase
  double first_mean_;          // of one stage
  double second_mean_;
};

struct SimulatedMean {
  double mean = 0;
  double half_width = 0;  // of the 95 % confidence interval

  bool covers(double value) const {
    return value >= mean - half_width && value <= mean + half_width;
  }
};

struct SimulatedStation {
  SimulatedMean utilisation;
  SimulatedMean waiting_probability;
  SimulatedMean waiting_count;
  SimulatedMean waiting_seconds;
  SimulatedMean response_seconds;
};

struct SimulatedNetwork {
  SimulatedStation tier;        // the station of k servers
  SimulatedStation miss_queue;  // empty in a network of one station
  SimulatedMean hit_response_seconds;
  SimulatedMean miss_response_seconds;
  SimulatedMean response_seconds;
};

struct SimulationLength {
  std::uint64_t requests = 200'000;
  std::uint64_t seed = 1;
};

// Requires: a stable station whose load an estimate accepts.
SimulatedStation simulate_station(const StationLoad& load, const SimulationLength& length);

// Requires of both: a network in equilibrium whose load an estimate accepts, with hits and misses.
SimulatedNetwork simulate_shared_station(const TwoTierLoad& load, const SimulationLength& length);
SimulatedNetwork simulate_miss_queue(const TwoTierLoad& load, const SimulationLength& length);

}  // namespace cairn
