// SPDX-License-Identifier: Apache-2.0
// A queueing station in equilibrium: requests arrive, wait in one line, first come, first served,
// and each is served by one of k equal servers. estimate_station() gives utilisation, lengths and
// times from the first two moments of the times between arrivals and of the service times.
//
// Two stations have exact models: M/M/k (Erlang 1917), which includes M/M/1, and M/G/1
// (Pollaczek 1930, Khinchine 1932). The others are approximations:
//   M/G/k  T. Kimura, "A Two-Moment Approximation for the Mean Waiting Time in the GI/G/s Queue",
//          Management Science 32(6), 1986, for Poisson arrivals: the harmonic mean of M/M/k and
//          M/D/k, weighted by cv2. M/D/k is that of G. P. Cosmetatos, "Some Approximate
//          Equilibrium Results for the Multi-Server Queue (M/G/r)", Operational Research
//          Quarterly 27, 1976, bounded as Whitt does (below). Lee and Longton (1959) scale M/M/k
//          by (1 + cv2) / 2 instead: for k = 4, cv2 = 4 and half utilisation that is a third too
//          long, this is within 5 %.
//   G/G/1  W. Kraemer, M. Langenbach-Belz, "Approximate Formulae for the Delay in the Queueing
//          System GI/G/1", 8th International Teletraffic Congress, 1976.
//   G/G/k  W. Whitt, "Approximations for the GI/G/m Queue", Production and Operations Management
//          2(2), 1993, equations 2.24 and 2.25; the probability of waiting as there for m <= 6.
// docs/models.md has their errors, measured against a simulation.
//
// Units: seconds, requests per second. cv2 is a squared coefficient of variation, variance /
// mean^2: 0 for equal times, 1 for exponential ones (Poisson arrivals), above 1 for bursts.
// Times are independent of each other.
//
// Thread safety: pure functions of values. Cost: O(servers).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace cairn {

struct StationLoad {
  static constexpr std::uint32_t kServersMax = 65536;
  // Rates and times outside 1e-18 .. 1e18 are mistakes of units.
  static constexpr double kMagnitudeMax = 1e18;
  static constexpr double kCv2Max = 1e6;

  double arrival_rate = 0;     // requests per second; 0: the station is idle
  double service_seconds = 0;  // mean time that one server needs for one request
  std::uint32_t servers = 1;
  double arrival_cv2 = 1;
  double service_cv2 = 1;

  // Mean number of busy servers, if there are enough of them.
  double offered_load() const { return arrival_rate * service_seconds; }
  // Errors: kInvalid, which number is wrong.
  Status check() const;
};

// Kendall's names: times between arrivals, service times, servers. M: exponential, G: general.
enum class StationModel : std::uint8_t { kMM1, kMMk, kMG1, kMGk, kGG1, kGGk };

std::string_view name_of(StationModel model);
// Whether the mean times of the model are exact.
bool is_exact(StationModel model);
StationModel model_of(const StationLoad& load);

struct StationEquilibrium {
  double waiting_probability = 0;  // that an arriving request finds all servers busy
  double waiting_count = 0;        // Lq: mean number of requests in the line
  double present_count = 0;        // L: those in service, too
  double waiting_seconds = 0;      // Wq
  double response_seconds = 0;     // W: waiting and service
};

struct StationEstimate {
  StationModel model = StationModel::kMM1;
  double utilisation = 0;  // of each server; from 1 on the line grows without end
  std::optional<StationEquilibrium> equilibrium;  // none if the utilisation is 1 or more

  bool is_stable() const { return equilibrium.has_value(); }
};

// An unstable station is a result: its estimate has no equilibrium.
// Errors: kInvalid, which number of the load is wrong.
Result<StationEstimate> estimate_station(const StationLoad& load);

// The probability that a request of an M/M/k station waits (Erlang C). It is computed from Erlang
// B's recursion, whose terms stay between 0 and 1 for any number of servers.
// Requires: 0 <= offered_load < servers.
double erlang_c(std::uint32_t servers, double offered_load);

}  // namespace cairn
