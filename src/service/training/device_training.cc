// SPDX-License-Identifier: Apache-2.0
#include "service/training/device_training.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/random_source.h"

namespace cairn::training {
namespace {

// Every experiment is repeated, and some more than once.
constexpr double kDesignShare = 0.4;
// Opening, starting and flushing.
constexpr double kOverheadSeconds = 0.01;
// An experiment that takes so many times what it was expected to is cut short.
constexpr double kPatience = 10;
constexpr double kPatienceMin = 1;

double seconds_per_request(const ExperimentTime& time) {
  CAIRN_DCHECK(time.requests > 0);
  return time.seconds / static_cast<double>(time.requests);
}

// The middle one; the mean of the two in the middle of an even number. Requires: there are some.
double median_of(std::vector<double> times) {
  CAIRN_CHECK(!times.empty());
  std::ranges::sort(times);
  const std::size_t middle = times.size() / 2;
  return times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
}

class TrainingWalk {
 public:
  TrainingWalk(Journal* journal, const ExperimentDesign& design, ExperimentBench* bench,
               const TrainingOptions& options)
      : journal_(journal), design_(design), bench_(bench), options_(options) {
    CAIRN_CHECK(journal_->plan().has_value());
    end_ns_ = now_ns() + static_cast<std::int64_t>(options_.seconds * 1e9);
    is_done_.resize(design_.experiments.size());
    for (const FinishedExperiment& finished : journal_->finished()) {
      if (finished.index < is_done_.size()) is_done_[finished.index] = true;
    }
  }

  Result<TrainingOutcome> run() {
    for (std::size_t index = 0; index < design_.experiments.size(); ++index) {
      if (is_done_[index]) continue;
      if (is_cancelled()) return outcome(TrainingEnd::kCancelled);
      if (now_ns() >= end_ns_) return outcome(TrainingEnd::kTime);
      const Result<FinishedExperiment> finished = measure(index);
      if (!finished && is_cancelled()) return outcome(TrainingEnd::kCancelled);
      if (!finished) return finished.status();
      CAIRN_RETURN_IF_ERROR(journal_->append(*finished));
      is_done_[index] = true;
      tell(finished->is_busy ? finished->spread : 0, finished->rounds);
    }
    return outcome(TrainingEnd::kComplete);
  }

 private:
  std::int64_t now_ns() const { return options_.now_ns ? options_.now_ns() : monotonic_ns(); }

  bool is_cancelled() const {
    return options_.cancelled != nullptr && options_.cancelled->load(std::memory_order_relaxed);
  }

  std::size_t finished_count() const {
    return static_cast<std::size_t>(std::count(is_done_.begin(), is_done_.end(), true));
  }

  void tell(double spread, unsigned round) const {
    if (options_.progress) {
      options_.progress({finished_count(), design_.experiments.size(), spread, round});
    }
  }

  Result<FinishedExperiment> measure(std::size_t index) {
    FinishedExperiment finished;
    finished.index = index;
    finished.experiment = design_.experiments[index];
    std::vector<double> times;
    for (finished.rounds = 1;; ++finished.rounds) {
      CAIRN_RETURN_IF_ERROR(measure_round(&finished, &times));
      finished.is_busy = finished.spread > kSpreadMax;
      // A burst of somebody else's requests spoils a repetition or two, and not the middle of all.
      finished.seconds = median_of(times) * static_cast<double>(finished.experiment.requests);
      if (!finished.is_busy || finished.rounds == kRoundsMax) return finished;
      tell(finished.spread, finished.rounds);
    }
  }

  // Adds the seconds of a request in each repetition to `all`.
  Status measure_round(FinishedExperiment* finished, std::vector<double>* all) {
    const Experiment& wanted = design_.experiments[finished->index];
    const double patience = std::max(kPatience * wanted.expected_seconds, kPatienceMin);
    std::array<double, kRepetitions> times{};
    std::uint64_t requests = finished->experiment.requests;
    for (double& time : times) {
      const auto measured = bench_->run(wanted, static_cast<std::int64_t>(patience * 1e9));
      if (!measured) return measured.status();
      time = seconds_per_request(*measured);
      requests = std::min(requests, measured->requests);
    }
    const auto [shortest, longest] = std::ranges::minmax(times);
    if (!(shortest > 0)) return {StatusCode::kUnavailable, "a request took no time"};
    all->insert(all->end(), times.begin(), times.end());
    finished->experiment.requests = requests;
    finished->spread = (longest - shortest) / shortest;
    return Status::ok();
  }

  TrainingOutcome outcome(TrainingEnd end) const {
    TrainingOutcome outcome;
    outcome.end = end;
    outcome.finished = finished_count();
    outcome.planned = design_.experiments.size();
    for (const FinishedExperiment& finished : journal_->finished()) {
      outcome.repeated += finished.rounds > 1 ? 1 : 0;
      outcome.busy += finished.is_busy ? 1 : 0;
    }
    return outcome;
  }

  Journal* journal_;
  const ExperimentDesign& design_;
  ExperimentBench* bench_;
  const TrainingOptions& options_;
  std::int64_t end_ns_ = 0;
  std::vector<bool> is_done_;
};

AccessModel fit_access(const std::vector<FinishedExperiment>& finished, AccessKind access) {
  AccessModel result;
  result.access = access;
  Observations observations(std::tuple_size_v<decltype(point_of({}))>);
  for (const FinishedExperiment& one : finished) {
    if (one.experiment.access != access) continue;
    observations.add(point_of(one.experiment), one.seconds);
  }
  result.experiments = observations.rows();
  if (observations.rows() == 0) {
    result.problem = "no experiment is finished";
    return result;
  }
  Result<DeviceModel> model = choose_device_model(kSolidStateEquation, observations);
  if (model) {
    result.model = std::move(model.value());
  } else {
    result.problem = model.status().message();
  }
  return result;
}

}  // namespace

PhysicalDevice rough_device(const profiler::DeviceFigures& figures, AccessKind access) {
  const bool is_read = access == AccessKind::kRead;
  const auto direction = is_read ? profiler::Direction::kRead : profiler::Direction::kWrite;
  PhysicalDevice device;
  device.latency_seconds = (is_read ? figures.read_latency : figures.write_latency).value;
  device.peak_bandwidth = (is_read ? figures.read_bandwidth : figures.write_bandwidth).value;
  device.thread_bandwidth = device.peak_bandwidth;
  double alone = 0;
  double together = 0;
  for (const profiler::CellFigures& cell : figures.cells) {
    if (cell.direction != direction) continue;
    constexpr std::uint32_t kSmallBytes = 4096;
    constexpr std::uint32_t kLargeBytes = 1 << 20;
    if (cell.request_bytes == kLargeBytes && cell.depth == 1) {
      device.thread_bandwidth = cell.bandwidth.value;
    }
    if (cell.request_bytes == kSmallBytes) {
      (cell.depth == 1 ? alone : together) = cell.bandwidth.value;
    }
  }
  device.queue_depth = alone > 0 ? std::max(1.0, together / alone) : 1;
  return device;
}

Result<ExperimentDesign> design_of(const TrainingPlan& plan) {
  DesignRequest request;
  request.device_bytes = plan.space_bytes;
  request.budget_seconds = plan.budget_seconds * kDesignShare;
  request.threads_max = DeviceBench::kThreadsMax;
  request.overhead_seconds = kOverheadSeconds;
  request.seed = plan.seed;
  request.reads = plan.reads;
  request.writes = plan.writes;
  std::erase_if(request.levels.request_bytes,
                [&plan](std::uint64_t bytes) { return bytes < plan.request_bytes_min; });
  Result<ExperimentDesign> design = design_experiments(request);
  if (!design) return design;
  RandomSource random(plan.seed);
  std::vector<Experiment>& experiments = design->experiments;
  for (std::size_t left = experiments.size(); left > 1; --left) {
    std::swap(experiments[left - 1], experiments[random.below(static_cast<std::uint32_t>(left))]);
  }
  return design;
}

Result<TrainingOutcome> train(Journal* journal, const ExperimentDesign& design,
                              ExperimentBench* bench, const TrainingOptions& options) {
  CAIRN_CHECK(options.seconds > 0);
  return TrainingWalk(journal, design, bench, options).run();
}

std::array<double, 4> point_of(const Experiment& experiment) {
  return {static_cast<double>(experiment.threads), static_cast<double>(experiment.request_bytes),
          static_cast<double>(experiment.requests),
          static_cast<double>(experiment.address_range_bytes)};
}

std::vector<AccessModel> fit_models(const std::vector<FinishedExperiment>& finished) {
  return {fit_access(finished, AccessKind::kRead), fit_access(finished, AccessKind::kWrite)};
}

}  // namespace cairn::training
