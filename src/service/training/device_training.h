// SPDX-License-Identifier: Apache-2.0
//
// Walks the experiments of a plan on a device, in a shuffled order that the plan's seed fixes, and
// fits the models of reads and of writes to what was measured.
//
// Every experiment is measured twice. Where the two differ too much, somebody else used the device:
// both are measured again, at most in three rounds, and what still differs is marked. The order is
// shuffled so that a training that ends early has seen all of the ranges.
//
// Thread safety: one thread; `cancelled` may be set by any, and by a signal handler. Ownership:
// borrows the journal and the bench. Units: seconds.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "policy/regressions/device_model.h"
#include "service/profiler/device_figures.h"
#include "service/training/experiment_bench.h"
#include "service/training/journal.h"

namespace cairn::training {

inline constexpr unsigned kRepetitions = 2;
inline constexpr unsigned kRoundsMax = 3;
// Part of the shortest repetition by which the longest may exceed it.
inline constexpr double kSpreadMax = 0.3;

struct TrainingProgress {
  std::size_t finished = 0;
  std::size_t planned = 0;
  // Above 0 where an experiment is measured again, or was given up as busy.
  double spread = 0;
  unsigned round = 1;
};

struct TrainingOptions {
  double seconds = 600;  // after which no experiment is started
  const std::atomic<bool>* cancelled = nullptr;
  std::function<void(const TrainingProgress&)> progress;
  std::function<std::int64_t()> now_ns;  // the monotonic clock where it is empty
};

enum class TrainingEnd : std::uint8_t { kComplete, kTime, kCancelled };

struct TrainingOutcome {
  TrainingEnd end = TrainingEnd::kComplete;
  std::size_t finished = 0;  // of all sessions
  std::size_t planned = 0;
  std::size_t repeated = 0;  // of all sessions
  std::size_t busy = 0;
};

struct AccessModel {
  AccessKind access = AccessKind::kRead;
  std::size_t experiments = 0;
  std::optional<DeviceModel> model;
  std::string problem;  // why there is no model
};

// The device as a short measurement shows it, which scales the design.
PhysicalDevice rough_device(const profiler::DeviceFigures& figures, AccessKind access);

// The experiments in the order of the training. Errors: those of design_experiments().
Result<ExperimentDesign> design_of(const TrainingPlan& plan);

// Goes on behind what the journal has. Errors: those of the bench and of the journal.
// Requires: the journal has a plan, and `design` follows from it.
Result<TrainingOutcome> train(Journal* journal, const ExperimentDesign& design,
                              ExperimentBench* bench, const TrainingOptions& options);

// As equation 8 takes it: x1, x3, x4, x5.
std::array<double, 4> point_of(const Experiment& experiment);

// Reads first, then writes.
std::vector<AccessModel> fit_models(const std::vector<FinishedExperiment>& finished);

}  // namespace cairn::training
