// SPDX-License-Identifier: Apache-2.0
#include "policy/models/testing/queue_simulation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <vector>

#include "base/check.h"

namespace cairn {
namespace {

// Between 0 and 1, both excluded.
double uniform_draw(std::mt19937_64& random) {
  return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
}

// The mean of values, or of sums over time, with its confidence interval.
class BatchedMean {
 public:
  // Values before the first batch are of the warm-up.
  void begin_batch() { ++batches_; }

  void add(double value, double weight = 1) {
    if (batches_ == 0) return;
    values_[batches_ - 1] += value;
    weights_[batches_ - 1] += weight;
  }

  SimulatedMean result() const {
    CAIRN_DCHECK(batches_ == kSimulationBatches);
    // Student's t with 29 degrees of freedom, both sides.
    static_assert(kSimulationBatches == 30);
    constexpr double kStudent95 = 2.045;
    SimulatedMean found;
    double squares = 0;
    for (unsigned batch = 0; batch < kSimulationBatches; ++batch) {
      CAIRN_DCHECK(weights_[batch] > 0);
      found.mean += values_[batch] / weights_[batch] / kSimulationBatches;
    }
    for (unsigned batch = 0; batch < kSimulationBatches; ++batch) {
      const double deviation = values_[batch] / weights_[batch] - found.mean;
      squares += deviation * deviation;
    }
    const double variance = squares / (kSimulationBatches - 1);
    found.half_width = kStudent95 * std::sqrt(variance / kSimulationBatches);
    return found;
  }

 private:
  unsigned batches_ = 0;
  std::array<double, kSimulationBatches> values_{};
  std::array<double, kSimulationBatches> weights_{};
};

// A station and what is measured of it.
class ServingStation {
 public:
  explicit ServingStation(std::uint32_t servers) : free_at_(servers, 0.0) {}

  void begin_batch() {
    for (BatchedMean* mean : {&utilisation_, &waits_, &line_, &waiting_, &response_})
      mean->begin_batch();
  }

  // Requires: calls in the order of arrivals. Returns: when the request leaves.
  double serve(double arrival, double service) {
    CAIRN_DCHECK(arrival >= last_arrival_);
    const double passed = arrival - last_arrival_;
    last_arrival_ = arrival;
    double& free_at = *std::ranges::min_element(free_at_);
    const double waiting = std::max(0.0, free_at - arrival);
    free_at = arrival + waiting + service;
    utilisation_.add(service, passed * static_cast<double>(free_at_.size()));
    waits_.add(waiting > 0 ? 1 : 0);
    // The request is one of the line for as long as it waits.
    line_.add(waiting, passed);
    waiting_.add(waiting);
    response_.add(waiting + service);
    return free_at;
  }

  SimulatedStation result() const {
    return {utilisation_.result(), waits_.result(), line_.result(), waiting_.result(),
            response_.result()};
  }

 private:
  std::vector<double> free_at_;  // of each server
  double last_arrival_ = 0;
  BatchedMean utilisation_;
  BatchedMean waits_;
  BatchedMean line_;
  BatchedMean waiting_;
  BatchedMean response_;
};

// Counts requests, and says when a batch begins.
class BatchPlan {
 public:
  explicit BatchPlan(std::uint64_t requests)
      : warm_up_(requests / 10), batch_((requests - warm_up_) / kSimulationBatches) {
    CAIRN_CHECK(batch_ > 0);
  }

  std::uint64_t requests() const { return warm_up_ + batch_ * kSimulationBatches; }
  bool begins_batch(std::uint64_t request) const {
    return request >= warm_up_ && (request - warm_up_) % batch_ == 0;
  }

 private:
  std::uint64_t warm_up_;
  std::uint64_t batch_;
};

// The measures of a network beside those of its stations.
struct ResponseMeans {
  BatchedMean hits;
  BatchedMean misses;
  BatchedMean whole;

  void begin_batch() {
    for (BatchedMean* mean : {&hits, &misses, &whole}) mean->begin_batch();
  }
  void add(double seconds, bool is_miss) {
    (is_miss ? misses : hits).add(seconds);
    whole.add(seconds);
  }
};

// A miss that the miss queue has served.
struct ReturningMiss {
  double arrival;  // in the network
  double returns;  // at tier 1
};

}  // namespace

RandomTimes::RandomTimes(double mean, double cv2) : first_mean_(mean), second_mean_(mean) {
  CAIRN_CHECK(mean > 0);
  CAIRN_CHECK(cv2 >= 0);
  if (cv2 > 1) {
    first_fraction_ = (1 + std::sqrt((cv2 - 1) / (cv2 + 1))) / 2;
    first_mean_ = mean / (2 * first_fraction_);
    second_mean_ = mean / (2 * (1 - first_fraction_));
  } else if (cv2 == 0) {
    stages_ = 0;
  } else {
    stages_ = static_cast<unsigned>(std::lround(1 / cv2));
    CAIRN_CHECK(std::abs(stages_ * cv2 - 1) < 1e-9);
    first_mean_ = mean / stages_;
  }
}

double RandomTimes::draw(std::mt19937_64& random) const {
  if (stages_ == 0) return first_mean_;
  const bool is_first = first_fraction_ == 1 || uniform_draw(random) < first_fraction_;
  double product = 1;
  for (unsigned stage = 0; stage < stages_; ++stage) product *= uniform_draw(random);
  return -(is_first ? first_mean_ : second_mean_) * std::log(product);
}

SimulatedStation simulate_station(const StationLoad& load, const SimulationLength& length) {
  std::mt19937_64 random(length.seed);
  const RandomTimes between(1 / load.arrival_rate, load.arrival_cv2);
  const RandomTimes service(load.service_seconds, load.service_cv2);
  ServingStation station(load.servers);
  const BatchPlan plan(length.requests);
  double now = 0;
  for (std::uint64_t request = 0; request < plan.requests(); ++request) {
    if (plan.begins_batch(request)) station.begin_batch();
    now += between.draw(random);
    station.serve(now, service.draw(random));
  }
  return station.result();
}

SimulatedNetwork simulate_shared_station(const TwoTierLoad& load, const SimulationLength& length) {
  std::mt19937_64 random(length.seed);
  const RandomTimes between(1 / load.arrival_rate, 1);
  const RandomTimes hit(load.hit.seconds, load.hit.cv2);
  const RandomTimes miss(load.miss.seconds, load.miss.cv2);
  ServingStation tier(load.servers);
  ResponseMeans responses;
  const BatchPlan plan(length.requests);
  double now = 0;
  for (std::uint64_t request = 0; request < plan.requests(); ++request) {
    if (plan.begins_batch(request)) {
      tier.begin_batch();
      responses.begin_batch();
    }
    now += between.draw(random);
    const bool is_miss = uniform_draw(random) < load.miss_ratio;
    const double service = (is_miss ? miss : hit).draw(random);
    responses.add(tier.serve(now, service) - now, is_miss);
  }
  return {tier.result(),
          {},
          responses.hits.result(),
          responses.misses.result(),
          responses.whole.result()};
}

SimulatedNetwork simulate_miss_queue(const TwoTierLoad& load, const SimulationLength& length) {
  std::mt19937_64 random(length.seed);
  const RandomTimes between(1 / load.arrival_rate, 1);
  const RandomTimes hit(load.hit.seconds, load.hit.cv2);
  const RandomTimes miss(load.miss.seconds, load.miss.cv2);
  ServingStation tier(load.servers);
  ServingStation miss_queue(1);
  ResponseMeans responses;
  // One server serves them in order, so that they return in order.
  std::deque<ReturningMiss> returning;
  const BatchPlan plan(length.requests);
  double now = 0;
  for (std::uint64_t request = 0; request < plan.requests(); ++request) {
    if (plan.begins_batch(request)) {
      tier.begin_batch();
      miss_queue.begin_batch();
      responses.begin_batch();
    }
    now += between.draw(random);
    for (; !returning.empty() && returning.front().returns <= now; returning.pop_front()) {
      const ReturningMiss& first = returning.front();
      responses.add(tier.serve(first.returns, hit.draw(random)) - first.arrival, true);
    }
    if (uniform_draw(random) < load.miss_ratio) {
      returning.push_back({now, miss_queue.serve(now, miss.draw(random))});
    } else {
      responses.add(tier.serve(now, hit.draw(random)) - now, false);
    }
  }
  return {tier.result(), miss_queue.result(), responses.hits.result(), responses.misses.result(),
          responses.whole.result()};
}

}  // namespace cairn
