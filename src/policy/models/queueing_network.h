// SPDX-License-Identifier: Apache-2.0
// The two tiers of one process as a network of queues ("Performance Models for a Two-tiered Storage
// System", section 5): requests hit tier 1 or miss it.
//
//   estimate_shared_station()  k threads serve hits and misses alike: one M/G/k station whose
//                              service times are the mixture of both (equation 5). It is exact
//                              for k = 1. For k > 1 and exponential times of both classes, the
//                              waiting time is interpolated linearly in the utilisation between
//                              two limits of its ratio to M/M/k: that of light traffic (D. Y.
//                              Burman, D. R. Smith, "A Light-Traffic Theorem for Multi-Server
//                              Queues", Mathematics of Operations Research 8(1), 1983) and that of
//                              heavy traffic, (1 + cv2) / 2. The two moments alone are not
//                              enough: hits and misses differ too much (docs/models.md)
//   estimate_miss_queue()      a thread of its own serves misses, an M/M/1 station, and each miss
//                              then passes the k threads as hits do (equations 6 and 7)
//   estimate_total_time()      the least time for given numbers of requests, also where the
//                              network is not in equilibrium (equations 1 to 4)
//
// Utilisations here are those of each server; the paper's rho of equation 6 is the offered load, k
// times as much, which must stay below k.
//
// Units: seconds, requests per second. Errors: kInvalid, which number is wrong. A network without
// equilibrium is a result, not an error.
// Thread safety: pure functions of values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "policy/models/queueing_station.h"

namespace cairn {

struct TierService {
  double seconds = 0;  // mean time of one request, 1/E(mu)
  double cv2 = 1;      // squared coefficient of variation
};

struct TwoTierLoad {
  double arrival_rate = 0;    // lambda; arrivals are Poisson
  double miss_ratio = 0;      // p12, the probability that a request misses tier 1
  std::uint32_t servers = 1;  // k, threads of tier 1
  TierService hit;            // in tier 1
  TierService miss;           // in tier 2

  double hit_rate() const { return (1 - miss_ratio) * arrival_rate; }
  double miss_rate() const { return miss_ratio * arrival_rate; }
};

// The service time of a request that may be a hit or a miss; the moments are exact.
struct ServiceMixture {
  double mean = 0;           // equation 5
  double second_moment = 0;  // of the times, not of their deviation from the mean
  double cv2 = 0;
};
// Requires: a load that an estimate accepts.
ServiceMixture mixture_of(const TwoTierLoad& load);

// Means of the requests of one class in the whole network.
struct ClassEquilibrium {
  double waiting_count = 0;
  double present_count = 0;
  double waiting_seconds = 0;
  double response_seconds = 0;
};

struct ClassEstimate {
  double arrival_rate = 0;
  double tier_utilisation = 0;        // the share of each of the k servers that the class takes
  double miss_queue_utilisation = 0;  // 0 in a network of one station
  std::optional<ClassEquilibrium> equilibrium;  // none if its requests pass an unstable station
};

struct NetworkEstimate {
  StationEstimate tier;                       // the station of k servers
  std::optional<StationEstimate> miss_queue;  // none in a network of one station
  ClassEstimate hits;
  ClassEstimate misses;
  ClassEstimate whole;  // all requests

  bool is_in_equilibrium() const { return whole.equilibrium.has_value(); }
};

Result<NetworkEstimate> estimate_shared_station(const TwoTierLoad& load);

// Exact for exponential times. Errors: kInvalid also if miss.cv2 is not 1, because the output of
// the miss queue is then no Poisson process.
Result<NetworkEstimate> estimate_miss_queue(const TwoTierLoad& load);

// Service rates of equations 1 and 2, requests per second.
struct TierRates {
  double reads = 0;   // mu1r
  double writes = 0;  // mu1w
  double misses = 0;  // mu2
};

struct ProcessRequests {
  double reads = 0;   // all of them, misses too: each passes tier 1
  double writes = 0;  // all of them
  double misses = 0;
};

struct ProcessTime {
  double hit_seconds = 0;   // equation 1
  double miss_seconds = 0;  // equation 2

  // Equation 3: tier 1 and the thread for misses work at the same time.
  double seconds() const { return hit_seconds > miss_seconds ? hit_seconds : miss_seconds; }
};

struct TotalTime {
  double seconds = 0;       // equation 4
  std::size_t slowest = 0;  // index of the process that takes as long
  std::vector<ProcessTime> processes;
};

// No process at all is an error, too.
Result<TotalTime> estimate_total_time(std::span<const ProcessRequests> processes,
                                      const TierRates& rates);

}  // namespace cairn
