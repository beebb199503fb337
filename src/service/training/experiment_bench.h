// SPDX-License-Identifier: Apache-2.0
//
// Runs one experiment of a design on the device under a directory: so many requests of a size, so
// many of them in flight at a time (the paper's client threads), to every place of an address range
// once before any comes twice, past the page cache.
//
// Each experiment pays for what the device has swallowed: writes end with a flush, whose time
// counts beyond that of an empty one.
//
// Thread safety: one thread. Ownership: the test file has no name and is gone with the bench or
// the process. Units: bytes, seconds, nanoseconds where a name says so.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/status.h"
#include "policy/regressions/experiment_design.h"
#include "service/profiler/request_engine.h"
#include "service/profiler/test_file.h"

namespace cairn::training {

struct ExperimentTime {
  double seconds = 0;
  std::uint64_t requests = 0;  // completed; fewer than wanted where the time was over
};

class ExperimentBench {
 public:
  virtual ~ExperimentBench() = default;
  // `time_max_ns`: after it no request is started any more. Errors: kUnavailable and others of the
  // device, with the directory's name; kRetry when the training is cancelled.
  virtual Result<ExperimentTime> run(const Experiment& experiment, std::int64_t time_max_ns) = 0;
};

class DeviceBench final : public ExperimentBench {
 public:
  static constexpr std::uint64_t kThreadsMax = 64;
  static constexpr std::uint64_t kRequestBytesMax = 262144;

  // Makes the test file and writes all of it once. `cancelled` outlives the bench. Errors: those of
  // profiler::TestFile; kRetry when cancelled.
  static Result<std::unique_ptr<DeviceBench>> create(const std::string& directory,
                                                     std::uint64_t bytes,
                                                     const std::atomic<bool>& cancelled);

  bool is_direct() const { return file_.is_direct(); }
  Result<ExperimentTime> run(const Experiment& experiment, std::int64_t time_max_ns) override;

 private:
  struct FreeMemory {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  DeviceBench(std::string directory, profiler::TestFile file, std::uint64_t bytes,
              const std::atomic<bool>& cancelled);
  Status fill();
  Status stopped() const;
  profiler::RequestRun request_run(const Experiment& experiment, std::int64_t time_max_ns) const;

  const std::string directory_;
  profiler::TestFile file_;
  const std::uint64_t file_bytes_;
  const std::atomic<bool>& cancelled_;
  std::unique_ptr<std::byte, FreeMemory> memory_;
  std::unique_ptr<profiler::RequestEngine> engine_;
};

// The smallest size of the design that the file system takes past the page cache: 512 or 4096.
Result<std::uint64_t> smallest_request(const std::string& directory);

}  // namespace cairn::training
