// SPDX-License-Identifier: Apache-2.0
#include "policy/models/queueing_network.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"

namespace cairn {
namespace {

Status wrong_network(const std::string& what) { return {StatusCode::kInvalid, "network: " + what}; }

Status check_network(const TwoTierLoad& load) {
  // Not a number fails both comparisons.
  if (!(load.miss_ratio >= 0 && load.miss_ratio <= 1)) {
    return wrong_network("the miss ratio must be from 0 to 1");
  }
  for (const TierService& service : {load.hit, load.miss}) {
    const StationLoad station{load.arrival_rate, service.seconds, load.servers, 1, service.cv2};
    CAIRN_RETURN_IF_ERROR(station.check());
  }
  return Status::ok();
}

ClassEstimate with_class_times(ClassEstimate estimate, double waiting_seconds,
                               double response_seconds) {
  CAIRN_DCHECK(waiting_seconds >= 0);
  CAIRN_DCHECK(waiting_seconds <= response_seconds);
  // Little's law.
  estimate.equilibrium =
      ClassEquilibrium{estimate.arrival_rate * waiting_seconds,
                       estimate.arrival_rate * response_seconds, waiting_seconds, response_seconds};
  return estimate;
}

// All requests, from both classes.
ClassEstimate whole_network(const TwoTierLoad& load, const NetworkEstimate& network) {
  const ClassEstimate& hits = network.hits;
  const ClassEstimate& misses = network.misses;
  const ClassEstimate whole{load.arrival_rate, hits.tier_utilisation + misses.tier_utilisation,
                            misses.miss_queue_utilisation, std::nullopt};
  CAIRN_DCHECK(std::abs(whole.tier_utilisation - network.tier.utilisation) <=
               1e-9 * (1 + network.tier.utilisation));
  if (!hits.equilibrium || !misses.equilibrium) return whole;
  const double miss_ratio = load.miss_ratio;
  const auto mean_of = [&](double of_hits, double of_misses) {
    return (1 - miss_ratio) * of_hits + miss_ratio * of_misses;
  };
  return with_class_times(
      whole, mean_of(hits.equilibrium->waiting_seconds, misses.equilibrium->waiting_seconds),
      mean_of(hits.equilibrium->response_seconds, misses.equilibrium->response_seconds));
}

// The waiting time of a mixture of two exponential times in units of that of M/M/k, where traffic
// is light. A request that finds all servers busy waits for the first of them to finish. The
// number of servers that serve misses then has a binomial distribution (Burman and Smith 1983).
double light_traffic_factor(const TwoTierLoad& load, double mean_seconds) {
  const double at_misses = load.miss_ratio * load.miss.seconds / mean_seconds;
  if (at_misses <= 0 || at_misses >= 1) return 1;
  double log_probability = load.servers * std::log1p(-at_misses);
  double first_ends = 0;  // mean time until it does
  for (std::uint32_t serving_misses = 0; serving_misses <= load.servers; ++serving_misses) {
    const std::uint32_t serving_hits = load.servers - serving_misses;
    first_ends += std::exp(log_probability) /
                  (serving_hits / load.hit.seconds + serving_misses / load.miss.seconds);
    log_probability += std::log(serving_hits / (serving_misses + 1.0)) + std::log(at_misses) -
                       std::log1p(-at_misses);
  }
  CAIRN_DCHECK(first_ends > 0);
  return load.servers * first_ends / mean_seconds;
}

// The station of both classes where k > 1 and the times of each are exponential.
// Requires: `station` is the two-moment estimate.
void refine_mixture(const TwoTierLoad& load, const ServiceMixture& mixture,
                    StationEstimate& station) {
  CAIRN_DCHECK(station.is_stable());
  const Result<StationEstimate> exponential =
      estimate_station({load.arrival_rate, mixture.mean, load.servers});
  CAIRN_DCHECK(exponential.is_ok());
  const double light = light_traffic_factor(load, mixture.mean);
  const double heavy = (1 + mixture.cv2) / 2;
  const double factor = (1 - station.utilisation) * light + station.utilisation * heavy;
  const double waiting = factor * exponential->equilibrium->waiting_seconds;
  station.equilibrium->waiting_seconds = waiting;
  station.equilibrium->response_seconds = waiting + mixture.mean;
  station.equilibrium->waiting_count = load.arrival_rate * waiting;
  station.equilibrium->present_count = load.arrival_rate * (waiting + mixture.mean);
}

bool is_request_count(double value) { return value >= 0 && value <= StationLoad::kMagnitudeMax; }

bool is_service_rate(double value) {
  return value >= 1 / StationLoad::kMagnitudeMax && value <= StationLoad::kMagnitudeMax;
}

}  // namespace

ServiceMixture mixture_of(const TwoTierLoad& load) {
  const auto second_moment = [](const TierService& service) {
    return service.seconds * service.seconds * (1 + service.cv2);
  };
  ServiceMixture mixture;
  mixture.mean = (1 - load.miss_ratio) * load.hit.seconds + load.miss_ratio * load.miss.seconds;
  mixture.second_moment =
      (1 - load.miss_ratio) * second_moment(load.hit) + load.miss_ratio * second_moment(load.miss);
  CAIRN_DCHECK(mixture.mean > 0);
  // The variance is that within the classes and that between them. The difference of the second
  // moment and the mean's square would lose all digits where times hardly vary.
  const double between = load.hit.seconds - load.miss.seconds;
  const double variance =
      (1 - load.miss_ratio) * load.hit.seconds * load.hit.seconds * load.hit.cv2 +
      load.miss_ratio * load.miss.seconds * load.miss.seconds * load.miss.cv2 +
      load.miss_ratio * (1 - load.miss_ratio) * between * between;
  mixture.cv2 = variance / (mixture.mean * mixture.mean);
  return mixture;
}

Result<NetworkEstimate> estimate_shared_station(const TwoTierLoad& load) {
  if (Status status = check_network(load); !status) return status;
  const ServiceMixture mixture = mixture_of(load);
  // Equal classes of exponential times are an M/M/k station, in spite of rounding.
  const bool is_one_class = load.hit.seconds == load.miss.seconds && load.hit.cv2 == load.miss.cv2;
  const double cv2 = is_one_class ? load.hit.cv2 : mixture.cv2;
  Result<StationEstimate> station =
      estimate_station({load.arrival_rate, mixture.mean, load.servers, 1, cv2});
  if (!station) return station.status();

  NetworkEstimate network;
  network.tier = *station;
  network.hits = {load.hit_rate(), load.hit_rate() * load.hit.seconds / load.servers, 0, {}};
  network.misses = {load.miss_rate(), load.miss_rate() * load.miss.seconds / load.servers, 0, {}};
  if (network.tier.is_stable()) {
    const bool are_exponential = load.hit.cv2 == 1 && load.miss.cv2 == 1;
    if (load.servers > 1 && are_exponential) refine_mixture(load, mixture, network.tier);
    // The line does not distinguish the classes, and Poisson arrivals of both find it alike.
    const double waiting = network.tier.equilibrium->waiting_seconds;
    network.hits = with_class_times(network.hits, waiting, waiting + load.hit.seconds);
    network.misses = with_class_times(network.misses, waiting, waiting + load.miss.seconds);
  }
  network.whole = whole_network(load, network);
  return network;
}

Result<NetworkEstimate> estimate_miss_queue(const TwoTierLoad& load) {
  if (Status status = check_network(load); !status) return status;
  if (load.miss.cv2 != 1) {
    return wrong_network("a miss queue needs exponential service times (cv2 of misses: 1)");
  }
  Result<StationEstimate> queue = estimate_station({load.miss_rate(), load.miss.seconds});
  if (!queue) return queue.status();
  // Misses reach tier 1 at the rate at which they leave the miss queue. The paper takes E(mu2) for
  // it, the queue's service rate. That is right only while the queue is saturated, and then the
  // network is not in equilibrium. A stable queue passes on what arrives, no more, and as a
  // Poisson process that is independent of the queue's length (P. J. Burke, "The Output of a
  // Queuing System", Operations Research 4(6), 1956). Together with the hits, which are an
  // independent Poisson process, tier 1 sees Poisson arrivals: its model is exact.
  const double returning_rate = std::min(load.miss_rate(), 1 / load.miss.seconds);
  Result<StationEstimate> tier = estimate_station(
      {load.hit_rate() + returning_rate, load.hit.seconds, load.servers, 1, load.hit.cv2});
  if (!tier) return tier.status();

  NetworkEstimate network;
  network.tier = *tier;
  network.miss_queue = *queue;
  network.hits = {load.hit_rate(), load.hit_rate() * load.hit.seconds / load.servers, 0, {}};
  network.misses = {
      load.miss_rate(), returning_rate * load.hit.seconds / load.servers, queue->utilisation, {}};
  if (tier->is_stable()) {
    const StationEquilibrium& at_tier = *tier->equilibrium;
    network.hits =
        with_class_times(network.hits, at_tier.waiting_seconds, at_tier.response_seconds);
    if (queue->is_stable()) {
      const StationEquilibrium& at_queue = *queue->equilibrium;
      network.misses =
          with_class_times(network.misses, at_queue.waiting_seconds + at_tier.waiting_seconds,
                           at_queue.response_seconds + at_tier.response_seconds);
    }
  }
  network.whole = whole_network(load, network);
  return network;
}

Result<TotalTime> estimate_total_time(std::span<const ProcessRequests> processes,
                                      const TierRates& rates) {
  if (processes.empty()) return wrong_network("no process");
  for (const double rate : {rates.reads, rates.writes, rates.misses}) {
    if (!is_service_rate(rate)) {
      return wrong_network("service rates must be from 1e-18 to 1e18 requests per second");
    }
  }
  TotalTime total;
  total.processes.reserve(processes.size());
  for (const ProcessRequests& process : processes) {
    for (const double count : {process.reads, process.writes, process.misses}) {
      if (!is_request_count(count))
        return wrong_network("numbers of requests must be from 0 to 1e18");
    }
    const ProcessTime time{process.reads / rates.reads + process.writes / rates.writes,
                           process.misses / rates.misses};
    if (time.seconds() > total.seconds) {
      total.seconds = time.seconds();
      total.slowest = total.processes.size();
    }
    total.processes.push_back(time);
  }
  CAIRN_DCHECK(total.processes.size() == processes.size());
  CAIRN_DCHECK(total.seconds == total.processes[total.slowest].seconds());
  return total;
}

}  // namespace cairn
