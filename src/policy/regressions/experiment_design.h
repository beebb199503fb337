// SPDX-License-Identifier: Apache-2.0
// Which experiments teach the model of a solid-state device (equation 8) within a time budget.
//
// The levels are those of the two-tier paper (section 5.1), with 1, 2 and 4 threads added, because
// many programs have few. A Latin hypercube over the levels (McKay, Beckman, Conover, Technometrics
// 1979) gives each level of each parameter the same number of experiments (one more or less), for
// reads and for writes. The design is scaled until the device and the budget have room for it, in
// this order:
//
//   address range    both ends by the same factor, to the device, and so that writing it once takes
//                    at most a quarter of the budget
//   requests         the upper end is halved, down to kRequestsSpan times the lower end
//   experiments      halved, down to kExperimentsMin of each access
//   requests         both ends are halved, down to a request per thread
//
// Cheap experiments come first. The list is a function of the request alone, so an interrupted
// training goes on behind the last experiment that it finished. An experiment may occur twice;
// repeated measurements show their spread.
//
// Thread safety: pure functions and values. Units: bytes, seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "policy/regressions/physical_device.h"

namespace cairn {

enum class AccessKind : std::uint8_t { kRead, kWrite };

struct Experiment {
  AccessKind access = AccessKind::kRead;
  std::uint64_t threads = 0;
  std::uint64_t request_bytes = 0;
  std::uint64_t requests = 0;  // of all threads
  std::uint64_t address_range_bytes = 0;
  double expected_seconds = 0;

  bool operator==(const Experiment&) const = default;
};

struct DesignLevels {
  static constexpr std::size_t kSteps = 6;  // of what is between two ends, by equal factors

  std::vector<std::uint64_t> threads{1, 2, 4, 8, 16, 32, 64};
  std::vector<std::uint64_t> request_bytes{512, 4096, 8192, 65536, 262144};
  std::uint64_t requests_min = 1'000;
  std::uint64_t requests_max = 4'000'000;
  std::uint64_t address_range_min = 500'000'000;
  std::uint64_t address_range_max = 500'000'000'000;
};

struct DesignRequest {
  std::uint64_t device_bytes = 0;  // that experiments may use
  double budget_seconds = 600;
  std::uint64_t threads_max = 64;
  std::size_t experiments_max = 400;  // of each access; the paper's number
  double overhead_seconds = 0.05;     // of an experiment: files opened, threads started
  std::uint64_t seed = 1;
  PhysicalDevice reads;  // as far as known; a short measurement is enough
  PhysicalDevice writes;
  DesignLevels levels;
};

struct ExperimentDesign {
  static constexpr std::uint64_t kRequestsSpan = 16;
  static constexpr std::size_t kExperimentsMin = 50;
  // The smallest address range is divided into pages, so ranges are multiples of one.
  static constexpr std::uint64_t kPageBytes = 4096;

  std::vector<Experiment> experiments;  // cheap ones first
  DesignLevels levels;                  // as scaled
  double preparation_seconds = 0;       // to write the largest address range once
  double expected_seconds = 0;          // in all
};

// Errors: kInvalid, when the device has no room for 16 requests of the largest size, no level of
// threads is left, a number is not positive, or the budget is too small for the smallest design
// (says what that takes).
Result<ExperimentDesign> design_experiments(const DesignRequest& request);

}  // namespace cairn
