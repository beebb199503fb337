// SPDX-License-Identifier: Apache-2.0
//
// What a training of a device has measured so far: a text file, one JSON object a line
// (docs/reference.md). The first line says the version, the device, the equation and the plan that
// the experiments follow from; each further one is a finished experiment, appended at once.
//
// A process that dies while it appends leaves half a line, which the next open() cuts off. A line
// that cannot be read is left out and counted; its experiment is measured again.
//
// Thread safety: one thread. Between processes a lock on the file lets one train at a time.
// Ownership: owns the descriptor, if it may append; the file stays, unless it is empty. Units:
// bytes, seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "policy/regressions/experiment_design.h"
#include "service/profiler/device_identity.h"

namespace cairn::training {

// All that the list of experiments follows from (policy/regressions/experiment_design.h).
struct TrainingPlan {
  double budget_seconds = 0;
  std::uint64_t space_bytes = 0;
  std::uint64_t request_bytes_min = 512;  // smaller ones the file system refuses
  std::uint64_t seed = 1;
  PhysicalDevice reads;  // from a short measurement
  PhysicalDevice writes;
};

struct FinishedExperiment {
  std::size_t index = 0;  // in the order of the training
  Experiment experiment;  // with as many requests as were completed
  double seconds = 0;     // the median of all repetitions
  unsigned rounds = 1;    // of repetitions
  double spread = 0;      // of the last round: (longest - shortest) / shortest
  bool is_busy = false;   // the spread was too large in every round
};

class Journal {
 public:
  static constexpr unsigned kVersion = 1;
  static constexpr std::size_t kFileBytesMax = std::size_t{16} << 20;

  // training-HOST-DEVICE.jsonl beside the profile store's file. Empty where that has no place.
  static std::string file_for(const profiler::DeviceIdentity& identity,
                              const std::string& store_file);

  // Errors: kIncompatible (another version, equation or device), kRetry (another process trains
  // the device), kInvalid (no journal), those of the file system. Messages name the file and what
  // to do.
  static Result<Journal> open(const std::string& file, const profiler::DeviceIdentity& identity);

  // As it is now, also while it grows: nothing is locked, made or cut off, and nothing can be
  // appended. Errors: kNotFound where the device was never trained; else those of open().
  static Result<Journal> read(const std::string& file, const profiler::DeviceIdentity& identity);

  Journal(Journal&& other) noexcept;
  Journal& operator=(Journal&& other) = delete;
  ~Journal();

  const std::string& file() const { return file_; }
  // None until begin().
  const std::optional<TrainingPlan>& plan() const { return plan_; }
  const std::vector<FinishedExperiment>& finished() const { return finished_; }
  std::size_t unreadable_lines() const { return unreadable_lines_; }

  // Requires: there is no plan yet.
  Status begin(const TrainingPlan& plan);
  // Requires: there is a plan.
  Status append(const FinishedExperiment& finished);

 private:
  Journal(std::string file, profiler::DeviceIdentity identity, int descriptor);
  Status load();
  // Returns: how many bytes are whole lines.
  Result<std::size_t> take_lines(const std::string& text);
  Status read_header(std::string_view line);
  void read_experiment(std::string_view line);
  Status write_line(const std::string& line);

  std::string file_;
  profiler::DeviceIdentity identity_;
  int descriptor_ = -1;
  std::optional<TrainingPlan> plan_;
  std::vector<FinishedExperiment> finished_;
  std::size_t unreadable_lines_ = 0;
};

}  // namespace cairn::training
