// SPDX-License-Identifier: Apache-2.0
#include "policy/models/queueing_station.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "base/check.h"

namespace cairn {
namespace {

// A stable station with something to do, as the formulas name its parts.
struct BusyStation {
  double utilisation;
  double servers;
  double arrival_cv2;
  double service_cv2;
  double exponential_waits;        // probability of waiting, if it were M/M/k
  double exponential_wait_length;  // mean waiting time in service times, if it were M/M/k
};

BusyStation busy_station(const StationLoad& load) {
  const double utilisation = load.offered_load() / load.servers;
  CAIRN_DCHECK(utilisation > 0);
  CAIRN_DCHECK(utilisation < 1);
  const double waits = erlang_c(load.servers, load.offered_load());
  return {
      utilisation, static_cast<double>(load.servers),         load.arrival_cv2, load.service_cv2,
      waits,       waits / (load.servers * (1 - utilisation))};
}

// How much longer equal service times let requests wait with several servers than with one, where
// they halve the time of M/M/k: Cosmetatos 1976, bounded by Whitt 1993.
double cosmetatos_excess(const BusyStation& station) {
  constexpr double kExcessMax = 0.24;
  const double servers = station.servers;
  const double excess = (1 - station.utilisation) * (servers - 1) *
                        (std::sqrt(4 + 5 * servers) - 2) / (16 * servers * station.utilisation);
  CAIRN_DCHECK(excess >= 0);
  return std::min(kExcessMax, excess);
}

// The factor by which times deviate from Allen-Cunneen's (arrival_cv2 + service_cv2) / 2 times the
// waiting time of M/M/k: Kraemer and Langenbach-Belz 1976. It is 1 for Poisson arrivals, which
// leaves Pollaczek and Khinchine's formula.
double kraemer_factor(const BusyStation& station) {
  const double arrival = station.arrival_cv2;
  const double service = station.service_cv2;
  const double idle = 1 - station.utilisation;
  if (arrival + service == 0) return 0;
  if (arrival < 1) {
    return std::exp(-2 * idle * (1 - arrival) * (1 - arrival) /
                    (3 * station.utilisation * (arrival + service)));
  }
  return std::exp(-idle * (arrival - 1) / (arrival + 4 * service));
}

// The same factor for Poisson arrivals at several servers: Kimura 1986.
double kimura_factor(const BusyStation& station) {
  const double deterministic = 1 + cosmetatos_excess(station);
  const double service = station.service_cv2;
  return 1 / (service + (1 - service) / deterministic);
}

// The same factor for several servers: Whitt 1993, equation 2.25.
double whitt_factor(const BusyStation& station) {
  const double arrival = station.arrival_cv2;
  const double service = station.service_cv2;
  const double excess = cosmetatos_excess(station);
  const double equal_service = 1 + excess;
  const double equal_arrivals =
      (1 - 4 * excess) * std::exp(-2 * (1 - station.utilisation) / (3 * station.utilisation));
  const double mean_cv2 = (arrival + service) / 2;
  const double both_equal = std::min(1.0, (equal_service + equal_arrivals) / 2);
  const double balanced = mean_cv2 >= 1 ? 1 : std::pow(both_equal, 2 * (1 - mean_cv2));
  if (arrival == service) return balanced;
  if (arrival > service) {
    const double total = 4 * arrival - 3 * service;
    return (4 * (arrival - service) * equal_service + service * balanced) / total;
  }
  const double total = 2 * (arrival + service);
  return ((service - arrival) * equal_arrivals + (service + 3 * arrival) * balanced) / total;
}

double allen_cunneen_correction(const BusyStation& station) {
  if (station.servers == 1) return kraemer_factor(station);
  return station.arrival_cv2 == 1 ? kimura_factor(station) : whitt_factor(station);
}

// Kraemer and Langenbach-Belz 1976; the utilisation for Poisson arrivals.
double single_server_waits(const BusyStation& station) {
  const double used = station.utilisation;
  const double arrival = station.arrival_cv2;
  const double service = station.service_cv2;
  const double spread = used * used * (4 * arrival + service);
  const double weight = arrival < 1
                            ? (1 + arrival + used * service) / (1 + used * (service - 1) + spread)
                            : 4 * used / (arrival + spread);
  return std::clamp(used + (arrival - 1) * used * (1 - used) * weight, 0.0, 1.0);
}

// How often a standard normal variable exceeds `value`.
double normal_tail(double value) { return std::erfc(value / std::numbers::sqrt2) / 2; }

// Whitt 1993: Erlang C, scaled as the probability of waiting is scaled in heavy traffic with many
// servers. Poisson arrivals leave Erlang C.
double several_servers_wait(const BusyStation& station) {
  const double distance = (1 - station.utilisation) * std::sqrt(station.servers);
  const double tail = normal_tail(distance);
  // So far from saturation that nearly no request waits, whatever its times are.
  if (tail == 0) return station.exponential_waits;
  const double arrival = station.arrival_cv2;
  const double service = station.service_cv2;
  const auto scaled = [&](double shrinking) {
    return std::min(1.0, normal_tail(distance * shrinking) / tail * station.exponential_waits);
  };
  const double heavy = arrival + service == 0 ? 0 : scaled((1 + service) / (arrival + service));
  const double light = scaled(2 / (1 + arrival));
  const double weight = station.utilisation * station.utilisation;
  return weight * heavy + (1 - weight) * light;
}

StationEquilibrium equilibrium_of(const StationLoad& load) {
  StationEquilibrium found;
  if (load.offered_load() > 0) {
    const BusyStation station = busy_station(load);
    found.waiting_probability =
        station.servers == 1 ? single_server_waits(station) : several_servers_wait(station);
    const double mean_cv2 = (station.arrival_cv2 + station.service_cv2) / 2;
    found.waiting_seconds = load.service_seconds * station.exponential_wait_length * mean_cv2 *
                            allen_cunneen_correction(station);
  }
  found.response_seconds = found.waiting_seconds + load.service_seconds;
  // Little's law.
  found.waiting_count = load.arrival_rate * found.waiting_seconds;
  found.present_count = load.arrival_rate * found.response_seconds;
  CAIRN_DCHECK(std::isfinite(found.response_seconds));
  CAIRN_DCHECK(found.waiting_seconds >= 0);
  CAIRN_DCHECK(found.waiting_count <= found.present_count);
  CAIRN_DCHECK(found.waiting_probability >= 0);
  CAIRN_DCHECK(found.waiting_probability <= 1);
  return found;
}

// Not a number lies in no range.
bool is_station_number(double value, double least, double most) {
  return value >= least && value <= most;
}

Status wrong_station(const std::string& what) { return {StatusCode::kInvalid, "station: " + what}; }

}  // namespace

Status StationLoad::check() const {
  constexpr double kMagnitudeMin = 1 / kMagnitudeMax;
  if (servers == 0) return wrong_station("it has no server");
  if (servers > kServersMax) {
    return wrong_station("more than " + std::to_string(kServersMax) + " servers");
  }
  if (arrival_rate != 0 && !is_station_number(arrival_rate, kMagnitudeMin, kMagnitudeMax)) {
    return wrong_station("the arrival rate must be 0, or from 1e-18 to 1e18 requests per second");
  }
  if (!is_station_number(service_seconds, kMagnitudeMin, kMagnitudeMax)) {
    return wrong_station("the service time must be from 1e-18 to 1e18 seconds");
  }
  if (!is_station_number(arrival_cv2, 0, kCv2Max)) {
    return wrong_station("the variation of arrivals (cv2) must be from 0 to 1e6");
  }
  if (!is_station_number(service_cv2, 0, kCv2Max)) {
    return wrong_station("the variation of service times (cv2) must be from 0 to 1e6");
  }
  return Status::ok();
}

std::string_view name_of(StationModel model) {
  switch (model) {
    case StationModel::kMM1:
      return "M/M/1";
    case StationModel::kMMk:
      return "M/M/k";
    case StationModel::kMG1:
      return "M/G/1";
    case StationModel::kMGk:
      return "M/G/k";
    case StationModel::kGG1:
      return "G/G/1";
    case StationModel::kGGk:
      return "G/G/k";
  }
  CAIRN_DCHECK(false);
  return "";
}

bool is_exact(StationModel model) {
  return model == StationModel::kMM1 || model == StationModel::kMMk || model == StationModel::kMG1;
}

StationModel model_of(const StationLoad& load) {
  const bool is_single = load.servers == 1;
  if (load.arrival_cv2 != 1) return is_single ? StationModel::kGG1 : StationModel::kGGk;
  if (load.service_cv2 != 1) return is_single ? StationModel::kMG1 : StationModel::kMGk;
  return is_single ? StationModel::kMM1 : StationModel::kMMk;
}

Result<StationEstimate> estimate_station(const StationLoad& load) {
  if (Status status = load.check(); !status) return status;
  StationEstimate estimate;
  estimate.model = model_of(load);
  estimate.utilisation = load.offered_load() / load.servers;
  CAIRN_DCHECK(std::isfinite(estimate.utilisation));
  if (estimate.utilisation < 1) estimate.equilibrium = equilibrium_of(load);
  return estimate;
}

double erlang_c(std::uint32_t servers, double offered_load) {
  CAIRN_DCHECK(servers > 0);
  CAIRN_DCHECK(offered_load >= 0);
  CAIRN_DCHECK(offered_load < servers);
  double all_busy = 1;  // Erlang B: the share of requests that a station without a line turns away
  for (std::uint32_t count = 1; count <= servers; ++count)
    all_busy = offered_load * all_busy / (count + offered_load * all_busy);
  CAIRN_DCHECK(all_busy >= 0);
  CAIRN_DCHECK(all_busy < 1);
  return all_busy / (1 - offered_load / servers * (1 - all_busy));
}

}  // namespace cairn
