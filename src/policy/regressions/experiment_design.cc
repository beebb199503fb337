// SPDX-License-Identifier: Apache-2.0
#include "policy/regressions/experiment_design.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/random_source.h"

namespace cairn {
namespace {

constexpr double kPreparationShare = 0.25;  // of the budget
constexpr std::uint64_t kRequestsInRangeMin = 16;

// From one end to the other by equal factors, both included.
std::vector<std::uint64_t> geometric_levels(std::uint64_t lowest, std::uint64_t highest,
                                            std::uint64_t multiple) {
  CAIRN_DCHECK(lowest > 0);
  CAIRN_DCHECK(lowest <= highest);
  std::vector<std::uint64_t> levels;
  const double ratio = static_cast<double>(highest) / static_cast<double>(lowest);
  for (std::size_t step = 0; step < DesignLevels::kSteps; ++step) {
    const double part = static_cast<double>(step) / (DesignLevels::kSteps - 1);
    const double level = static_cast<double>(lowest) * std::pow(ratio, part);
    const auto multiples =
        static_cast<std::uint64_t>(std::llround(level / static_cast<double>(multiple)));
    levels.push_back(std::clamp(multiples * multiple, lowest, highest));
  }
  return levels;
}

// One coordinate of a Latin hypercube: every level as often as the others, in a shuffled order.
std::vector<std::uint64_t> shuffled(const std::vector<std::uint64_t>& levels, std::size_t count,
                                    RandomSource* random) {
  std::vector<std::uint64_t> values(count);
  for (std::size_t index = 0; index < count; ++index) {
    values[index] = levels[index * levels.size() / count];
  }
  for (std::size_t left = count; left > 1; --left) {
    std::swap(values[left - 1], values[random->below(static_cast<std::uint32_t>(left))]);
  }
  return values;
}

// `experiments` of one access with the levels. Only the values depend on the levels, so scaling
// them does not shuffle anew.
void append_hypercube(const DesignRequest& request, AccessKind access, std::size_t count,
                      const DesignLevels& levels, std::vector<Experiment>* experiments) {
  RandomSource random(2 * request.seed + (access == AccessKind::kWrite ? 1 : 0));
  const auto threads = shuffled(levels.threads, count, &random);
  const auto sizes = shuffled(levels.request_bytes, count, &random);
  const auto requests =
      shuffled(geometric_levels(levels.requests_min, levels.requests_max, 1), count, &random);
  const auto ranges = shuffled(geometric_levels(levels.address_range_min, levels.address_range_max,
                                                ExperimentDesign::kPageBytes),
                               count, &random);
  const PhysicalDevice& device = access == AccessKind::kRead ? request.reads : request.writes;
  for (std::size_t index = 0; index < count; ++index) {
    DeviceWorkload workload;
    workload.threads = static_cast<double>(threads[index]);
    workload.requests = static_cast<double>(requests[index]);
    workload.request_bytes = static_cast<double>(sizes[index]);
    experiments->push_back({access, threads[index], sizes[index], requests[index], ranges[index],
                            device.seconds(workload) + request.overhead_seconds});
  }
}

// Scales the paper's design until it fits.
class DesignScaler {
 public:
  explicit DesignScaler(const DesignRequest& request)
      : request_(request), levels_(request.levels) {}

  Result<ExperimentDesign> run() {
    CAIRN_RETURN_IF_ERROR(check_request());
    CAIRN_RETURN_IF_ERROR(scale_address_range());
    for (std::size_t count = request_.experiments_max;; count = fewer_than(count)) {
      if (fits_with(count)) return std::move(design_);
      if (count <= ExperimentDesign::kExperimentsMin) break;
    }
    const std::size_t fewest =
        std::min(request_.experiments_max, ExperimentDesign::kExperimentsMin);
    while (levels_.requests_min > levels_.threads.back()) {
      levels_.requests_min = std::max(levels_.requests_min / 2, levels_.threads.back());
      if (fits_with(fewest)) return std::move(design_);
    }
    return Status(StatusCode::kInvalid,
                  "the smallest design takes " + std::to_string(std::lround(seconds_needed())) +
                      " s; the budget is " + std::to_string(std::lround(request_.budget_seconds)) +
                      " s");
  }

 private:
  static std::size_t fewer_than(std::size_t count) {
    return std::max(count / 2, ExperimentDesign::kExperimentsMin);
  }

  Status check_request() {
    std::erase_if(levels_.threads, [this](auto count) { return count > request_.threads_max; });
    std::sort(levels_.threads.begin(), levels_.threads.end());
    std::sort(levels_.request_bytes.begin(), levels_.request_bytes.end());
    if (levels_.threads.empty() || levels_.threads.front() == 0) {
      return {StatusCode::kInvalid, "no level of threads is between 1 and the most allowed"};
    }
    if (levels_.request_bytes.empty() || levels_.request_bytes.front() == 0 ||
        levels_.requests_min == 0 || levels_.requests_max < levels_.requests_min ||
        levels_.address_range_min == 0 || levels_.address_range_max < levels_.address_range_min) {
      return {StatusCode::kInvalid, "a level is 0, or a range ends before it begins"};
    }
    if (!request_.reads.is_valid() || !request_.writes.is_valid()) {
      return {StatusCode::kInvalid, "a number of the device is not positive"};
    }
    if (request_.experiments_max == 0 || !(request_.budget_seconds > 0)) {
      return {StatusCode::kInvalid, "a design needs experiments and a budget"};
    }
    return Status::ok();
  }

  Status scale_address_range() {
    const double paper_max = static_cast<double>(levels_.address_range_max);
    const double writable =
        kPreparationShare * request_.budget_seconds * request_.writes.peak_bandwidth;
    const double highest =
        std::min({paper_max, static_cast<double>(request_.device_bytes), writable});
    const double lowest = static_cast<double>(levels_.address_range_min) * highest / paper_max;
    const std::uint64_t room_min = kRequestsInRangeMin * levels_.request_bytes.back();
    levels_.address_range_max = whole_pages(highest);
    levels_.address_range_min =
        std::min(std::max(whole_pages(lowest), room_min), levels_.address_range_max);
    if (levels_.address_range_max < room_min) {
      return {StatusCode::kInvalid, "the device or the budget has room for " +
                                        std::to_string(levels_.address_range_max) +
                                        " bytes; the experiments need " + std::to_string(room_min)};
    }
    design_.preparation_seconds =
        static_cast<double>(levels_.address_range_max) / request_.writes.peak_bandwidth;
    return Status::ok();
  }

  static std::uint64_t whole_pages(double bytes) {
    const auto whole = static_cast<std::uint64_t>(bytes);
    return whole - whole % ExperimentDesign::kPageBytes;
  }

  // Returns: whether so many experiments of each access fit, with the widest span of requests.
  bool fits_with(std::size_t count) {
    const std::uint64_t widest = request_.levels.requests_max;
    const std::uint64_t narrowest =
        std::min(widest, levels_.requests_min * ExperimentDesign::kRequestsSpan);
    for (std::uint64_t most = widest;; most = std::max(most / 2, narrowest)) {
      levels_.requests_max = most;
      make_design(count);
      if (design_.expected_seconds <= request_.budget_seconds) return true;
      if (most == narrowest) return false;
    }
  }

  void make_design(std::size_t count) {
    design_.levels = levels_;
    design_.experiments.clear();
    append_hypercube(request_, AccessKind::kRead, count, levels_, &design_.experiments);
    append_hypercube(request_, AccessKind::kWrite, count, levels_, &design_.experiments);
    std::ranges::sort(design_.experiments, {}, [](const Experiment& one) {
      return std::tuple(one.expected_seconds, one.access, one.threads, one.request_bytes,
                        one.requests, one.address_range_bytes);
    });
    design_.expected_seconds = std::accumulate(
        design_.experiments.begin(), design_.experiments.end(), design_.preparation_seconds,
        [](double sum, const Experiment& one) { return sum + one.expected_seconds; });
    CAIRN_DCHECK(design_.experiments.size() == 2 * count);
    CAIRN_DCHECK(design_.expected_seconds > design_.preparation_seconds);
  }

  double seconds_needed() const { return std::ceil(design_.expected_seconds); }

  const DesignRequest& request_;
  DesignLevels levels_;  // scaled further with each try
  ExperimentDesign design_;
};

}  // namespace

Result<ExperimentDesign> design_experiments(const DesignRequest& request) {
  return DesignScaler(request).run();
}

}  // namespace cairn
