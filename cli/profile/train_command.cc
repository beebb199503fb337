// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/train_command.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/size_text.h"
#include "cli/profile/training_picture.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/terminal/paths.h"
#include "service/profiler/device_measure.h"
#include "service/profiler/directory_state.h"
#include "service/profiler/profile_json.h"
#include "service/training/device_training.h"

namespace cairn::cli {
namespace {

using nlohmann::json;

constexpr double kMinutesDefault = 10;
constexpr double kMinutesMax = 1440;
constexpr std::uint64_t kTrainingSpaceDefault = std::uint64_t{4} << 30;
// The part of the training's time that the measurement takes which scales the design.
constexpr double kFirstLookShare = 0.05;
constexpr double kFirstLookMin = 0.4;
// Further busy experiments are only counted.
constexpr unsigned kBusyToldMax = 5;

std::atomic<bool> g_is_stopped{false};
std::atomic<int> g_stop_signal{0};

void stop_training(int number) {
  g_stop_signal.store(number, std::memory_order_relaxed);
  g_is_stopped.store(true, std::memory_order_relaxed);
}

// Signals end the training after the request at hand; what was ignored (nohup) stays ignored.
class StopSignals {
 public:
  StopSignals() {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction before{};
      ::sigaction(number, nullptr, &before);
      if (before.sa_handler == SIG_IGN) continue;
      struct sigaction action{};
      action.sa_handler = stop_training;
      ::sigaction(number, &action, nullptr);
    }
  }

  // Ends the process as the signal would have; returns where there was none.
  static void end_by_signal() {
    const int number = g_stop_signal.load(std::memory_order_relaxed);
    if (number == 0) return;
    ::signal(number, SIG_DFL);
    ::raise(number);
  }
};

double minutes_of(const std::string& text) {
  if (text.empty()) return kMinutesDefault;
  double minutes = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, minutes);
  if (error != std::errc() || rest != end || !std::isfinite(minutes) || minutes <= 0 ||
      minutes > kMinutesMax) {
    throw Failure(fmt::format("--minutes: \"{}\" is not a number above 0, of at most {} minutes",
                              text, kMinutesMax),
                  "examples: 0.5, 10, 120");
  }
  return minutes;
}

std::uint64_t space_of(const std::string& text) {
  if (text.empty()) return kTrainingSpaceDefault;
  const auto bytes = parse_size(text);
  if (bytes && *bytes >= profiler::kMeasureSpaceMin) return *bytes;
  throw Failure(fmt::format("--space: \"{}\" is not a size of at least {}", text,
                            format_size(profiler::kMeasureSpaceMin)),
                "examples: 64M, 1G");
}

std::string remedy_of_training(const Status& status) {
  // The journal's messages say what to do.
  if (status.code() == StatusCode::kIncompatible || status.code() == StatusCode::kRetry) return "";
  return remedy_for(status);
}

// The remedies for places to measure would send people to the wrong directory.
std::string remedy_of_journal(const Status& status) {
  switch (status.code()) {
    case StatusCode::kIncompatible:
    case StatusCode::kRetry:
    case StatusCode::kInvalid:
      return "";  // the message says it
    default:
      return "a training is kept there; set XDG_STATE_HOME to a directory that you may write in";
  }
}

const char* name_of(AccessKind access) { return access == AccessKind::kRead ? "reads" : "writes"; }

// A device that was trained, with its models.
struct TrainedPlace {
  std::string directory;
  std::string file;
  profiler::DeviceIdentity identity;
  training::TrainingOutcome outcome;
  std::vector<training::AccessModel> models;
  std::string picture_lines;
};

class PlaceTraining {
 public:
  PlaceTraining(std::string directory, const ProfileOptions& options)
      : directory_(std::move(directory)),
        seconds_(minutes_of(options.minutes) * 60),
        space_(space_of(options.space)) {}

  // What to do about the error that run() returned.
  std::string remedy(const Status& status) const {
    return remedy_ ? *remedy_ : remedy_of_training(status);
  }

  Result<TrainedPlace> run(const std::string& store_file) {
    const auto identity = profiler::identify_directory(directory_);
    if (!identity) return identity.status();
    const std::string file = training::Journal::file_for(*identity, store_file);
    if (file.empty()) {
      return Status(StatusCode::kInvalid,
                    "there is no place to keep a training; set XDG_STATE_HOME to a directory "
                    "that you may write in");
    }
    auto journal = training::Journal::open(file, *identity);
    if (!journal) {
      remedy_ = remedy_of_journal(journal.status());
      return journal.status();
    }
    TrainedPlace place;
    place.directory = directory_;
    place.file = file;
    place.identity = *identity;
    CAIRN_RETURN_IF_ERROR(measure(&journal.value(), &place.outcome));
    if (place.outcome.end != training::TrainingEnd::kCancelled) {
      tell(fmt::format("fitting the models to {} experiments", place.outcome.finished));
      place.models = training::fit_models(journal->finished());
      place.picture_lines = picture_lines(directory_, place.models, journal->finished());
    }
    return place;
  }

 private:
  void tell(const std::string& text) const { say(printable(directory_) + ": " + text); }

  Status measure(training::Journal* journal, training::TrainingOutcome* outcome) {
    if (!journal->plan()) {
      const Result<training::TrainingPlan> plan = make_plan();
      if (!plan) return plan.status();
      CAIRN_RETURN_IF_ERROR(journal->begin(*plan));
    } else {
      tell(fmt::format("going on with {} finished experiments of {}", journal->finished().size(),
                       journal->file()));
    }
    if (journal->unreadable_lines() > 0) {
      tell(fmt::format("warning: {} lines of {} cannot be read; measuring these again",
                       journal->unreadable_lines(), journal->file()));
    }
    const Result<ExperimentDesign> design = training::design_of(*journal->plan());
    if (!design) return design.status();
    return walk(journal, *design, outcome);
  }

  Status walk(training::Journal* journal, const ExperimentDesign& design,
              training::TrainingOutcome* outcome) {
    const std::uint64_t bytes = design.levels.address_range_max;
    if (journal->finished().size() < design.experiments.size()) {
      tell(fmt::format("writing a test file of {}", format_size(bytes)));
    }
    training::TrainingOptions options;
    options.cancelled = &g_is_stopped;
    options.progress = [this](const training::TrainingProgress& news) { show(news); };
    const std::int64_t begin_ns = monotonic_ns();
    auto bench = training::DeviceBench::create(directory_, bytes, g_is_stopped);
    if (!bench && !g_is_stopped) return bench.status();
    if (!bench) {
      *outcome = {training::TrainingEnd::kCancelled, journal->finished().size(),
                  design.experiments.size()};
      return Status::ok();
    }
    if (!bench.value()->is_direct()) {
      tell("the file system knows no direct I/O; the page cache may have a part in the times");
    }
    const double spent = static_cast<double>(monotonic_ns() - begin_ns) * 1e-9;
    // However long the file took, a training measures something each time.
    options.seconds = std::max(seconds_ - spent - first_look_seconds_, seconds_ / 4);
    tell(fmt::format("{} experiments, for at most {}", design.experiments.size(),
                     format_duration(options.seconds)));
    const auto trained = training::train(journal, design, bench.value().get(), options);
    if (!trained) return trained.status();
    *outcome = *trained;
    return Status::ok();
  }

  Result<training::TrainingPlan> make_plan() {
    profiler::MeasureOptions options;
    options.seconds =
        std::clamp(seconds_ * kFirstLookShare, kFirstLookMin, profiler::kMeasureSecondsDefault);
    options.space_bytes = std::min(space_, profiler::kMeasureSpaceDefault);
    options.cancelled = &g_is_stopped;
    tell("a first look at the device");
    const std::int64_t begin_ns = monotonic_ns();
    const auto figures = profiler::measure_device(directory_, options);
    if (!figures) return figures.status();
    const auto smallest = training::smallest_request(directory_);
    if (!smallest) return smallest.status();
    first_look_seconds_ = static_cast<double>(monotonic_ns() - begin_ns) * 1e-9;
    const std::uint64_t free_bytes = profiler::read_directory_state(directory_).free_bytes;
    training::TrainingPlan plan;
    plan.budget_seconds = seconds_;
    plan.space_bytes = free_bytes == 0 ? space_ : std::min(space_, free_bytes / 4);
    plan.request_bytes_min = *smallest;
    plan.reads = training::rough_device(*figures, AccessKind::kRead);
    plan.writes = training::rough_device(*figures, AccessKind::kWrite);
    const Result<ExperimentDesign> design = training::design_of(plan);
    if (design) return plan;
    remedy_ = fmt::format("try --minutes {:.2g}", 4 * seconds_ / 60);
    return Status(design.status().code(),
                  fmt::format("{}: a training of {} is too short here: {}", directory_,
                              format_duration(seconds_), design.status().message()));
  }

  void show(const training::TrainingProgress& news) {
    if (news.spread > 0 && busy_told_ < kBusyToldMax) {
      ++busy_told_;
      const char* next =
          news.round == training::kRoundsMax ? "kept, and marked as busy" : "measured again";
      tell(fmt::format("the device is busy: two runs of an experiment differ by {:.0f} %; {}",
                       news.spread * 100, next));
    }
    const std::size_t quarter = news.planned == 0 ? 0 : 4 * news.finished / news.planned;
    if (quarter <= quarter_told_) return;
    quarter_told_ = quarter;
    tell(fmt::format("{} of {} experiments", news.finished, news.planned));
  }

  const std::string directory_;
  const double seconds_;
  const std::uint64_t space_;
  double first_look_seconds_ = 0;
  std::optional<std::string> remedy_;
  unsigned busy_told_ = 0;
  std::size_t quarter_told_ = 0;
};

const ModelFormula& solid_state_formula() {
  static const ModelFormula kFormula = formula_of(kSolidStateEquation);
  return kFormula;
}

std::string ranges_text(const DeviceModel& model) {
  std::string text = "trained with";
  for (std::size_t index = 0; index < model.training_ranges.size(); ++index) {
    const ParameterRange& range = model.training_ranges[index];
    text += fmt::format("{} {} = {:.6g} to {:.6g}", index == 0 ? "" : ",",
                        solid_state_formula().parameters[index], range.lowest, range.highest);
  }
  return text + '\n';
}

std::string place_text(const TrainedPlace& place) {
  std::string text = fmt::format(
      "{}: {} of {} experiments, {} measured again, {} busy; Y in seconds, x1 requests in flight, "
      "x3 bytes of a request, x4 requests, x5 bytes of the address range\n",
      printable(place.directory), place.outcome.finished, place.outcome.planned,
      place.outcome.repeated, place.outcome.busy);
  for (const training::AccessModel& model : place.models) {
    text += fmt::format("\n{}, {} experiments\n", name_of(model.access), model.experiments);
    text += model.model ? model.model->text() + ranges_text(*model.model)
                        : "no model yet: " + model.problem + '\n';
  }
  return text;
}

json error_json(const std::optional<CrossValidatedError>& error) {
  if (!error) return nullptr;
  return {{"r_squared", error->r_squared},
          {"root_mean_square", error->root_mean_square},
          {"median_relative", error->median_relative},
          {"factor_of_nine_tenths", error->factor_of_nine_tenths}};
}

json model_json(const training::AccessModel& model) {
  json object = {{"access", model.access == AccessKind::kRead ? "read" : "write"},
                 {"experiments", model.experiments}};
  if (!model.model) {
    object["problem"] = model.problem;
    return object;
  }
  const bool is_regression = model.model->kind == DeviceModelKind::kRegression;
  object["in_use"] = is_regression ? "regression" : "physical";
  object["regression_error"] = error_json(model.model->regression_error);
  object["physical_error"] = error_json(model.model->physical_error);
  object["text"] = model.model->text();
  json& ranges = object["ranges"] = json::object();
  for (std::size_t index = 0; index < model.model->training_ranges.size(); ++index) {
    const ParameterRange& range = model.model->training_ranges[index];
    ranges[solid_state_formula().parameters[index]] = {range.lowest, range.highest};
  }
  return object;
}

json place_json(const TrainedPlace& place) {
  json models = json::array();
  for (const training::AccessModel& model : place.models) models.push_back(model_json(model));
  return {{"place", place.directory},
          {"file", place.file},
          {"device", profiler::identity_json(place.identity)},
          {"finished", place.outcome.finished},
          {"planned", place.outcome.planned},
          {"repeated", place.outcome.repeated},
          {"busy", place.outcome.busy},
          {"models", models}};
}

void say_how_to_go_on(const TrainedPlace& place) {
  if (place.outcome.end == training::TrainingEnd::kComplete) {
    say(printable(place.directory) + ": the training is complete; to train anew, remove " +
        printable(place.file));
    return;
  }
  say(fmt::format("{}: {} of {} experiments are kept in {}; the same command goes on with them",
                  printable(place.directory), place.outcome.finished, place.outcome.planned,
                  printable(place.file)));
}

}  // namespace

void check_training_options(const ProfileOptions& options) {
  if (!options.train) {
    if (!options.picture.empty())
      throw Failure("--png shows how the models of a training fit", "give --train, too");
    if (options.minutes.empty()) return;
    throw Failure("--minutes is the time of a training", "give --train, too, or --seconds");
  }
  if (options.list || options.forget) {
    throw Failure(
        fmt::format("--train and {} exclude each other", options.list ? "--list" : "--forget"),
        "give one of them");
  }
  if (options.seconds > 0) throw Failure("--seconds does not go with --train", "give --minutes");
  (void)minutes_of(options.minutes);
  (void)space_of(options.space);
}

int run_training(const ProfileOptions& options, const profiler::ProfileStore& store) {
  const StopSignals signals;
  std::vector<std::string> directories = options.directories;
  if (directories.empty()) directories.push_back(working_directory());
  json trainings = json::array();
  json failures = json::array();
  std::string pictured;
  for (const std::string& given : directories) {
    const std::string directory = absolute_path(given);
    PlaceTraining place_training(directory, options);
    const Result<TrainedPlace> place = place_training.run(store.file());
    if (place) {
      say_how_to_go_on(*place);
      StopSignals::end_by_signal();
      if (!options.json) print(place_text(*place));
      trainings.push_back(place_json(*place));
      pictured += place->picture_lines;
      continue;
    }
    StopSignals::end_by_signal();
    const std::string remedy = place_training.remedy(place.status());
    say_failure(printable(place.status().message()), remedy);
    failures.push_back(
        {{"place", directory}, {"message", place.status().message()}, {"remedy", remedy}});
  }
  if (options.json) {
    const json document = {{"trainings", trainings}, {"failures", failures}};
    print(document.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  }
  if (!options.picture.empty() && !pictured.empty()) options.draw(pictured);
  return failures.empty() ? kExitOk : kExitRefused;
}

}  // namespace cairn::cli
