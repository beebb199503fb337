// SPDX-License-Identifier: Apache-2.0
// Samples the runs that have asked for it, and writes what it has of each to the run's record now
// and then, so that a run that never ends, and a node that dies, leave word of what there was.
//
// Without such a run there is no thread. A sample reads some hundred counters; the first rows are
// a tenth of a second apart, or a second, and SampleRing doubles that.
//
// Nothing here waits for a file system but stop(): RecordWriter has the records, StoreFigures asks
// the store, each in a thread of its own.
//
// Thread safety: any thread. Ownership: owns its threads and the series; borrows its sources.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "service/attachment/run_table.h"
#include "service/learning/heat_table.h"
#include "service/learning/learned_replacement.h"
#include "service/sampling/file_costs.h"
#include "service/sampling/node_gauges.h"
#include "service/sampling/process_shares.h"
#include "service/sampling/record_writer.h"
#include "service/sampling/sample_ring.h"
#include "service/treatment/store_figures.h"

namespace cairn::node {

// All of them outlive the sampler.
struct SamplerSources {
  const NodeConfig& config;
  const NodeMemory& memory;
  ClientTable& clients;
  NodeGauges& gauges;
  FileCosts& files;
  HeatTable& heat;
  StoreFigures& store;
  const LearnedReplacement* learned;  // null: nobody learns which blocks leave
};

enum class RunEnd {
  kTold,      // by its launcher, which writes the record from here on
  kAbandoned  // by a launcher that has gone: the record stays as the sampler has left it
};

enum class Sampling {
  kFull,
  kLight  // rows a second apart at first, and no record of a run of less than five
};

class Sampler {
 public:
  static constexpr std::int64_t kFirstIntervalNanos = 100'000'000;
  static constexpr std::int64_t kLightIntervalNanos = 1'000'000'000;
  static constexpr std::int64_t kSaveNanos = 5'000'000'000;
  static constexpr std::size_t kLeadersMax = 200;  // changes of experts
  static constexpr std::size_t kEndedRunsMax = 4;  // whose timelines are still known
  static constexpr std::size_t kFilesShown = 10;
  static constexpr std::size_t kProcessesShown = 64;

  explicit Sampler(const SamplerSources& sources);
  ~Sampler() { stop(); }
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // A run has begun, whether it is sampled or not. Asks the store at once where replacement needs
  // to know it: it is most likely to answer now.
  void look_at_store();
  // `record`: the file that the samples go to; an absolute path.
  void begin(const Run& run, const std::string& record, Sampling how);
  // The run's processes have ended: counts what they have told while the service has their files.
  void count_files(const Run& run);
  // Takes the last sample. A run that is not sampled is none of its business.
  void end(const Run& run, RunEnd how);
  // What there is of a run, or of one that has ended lately; nothing: it was not sampled.
  std::optional<nlohmann::json> timeline(const std::string& run);
  void stop();

 private:
  struct Leader {
    std::int64_t at_ns = 0;
    std::string tier;
    std::string expert;
  };
  struct Series {
    Series(const Run& of, const std::string& path, std::size_t columns, std::int64_t interval_ns)
        : run(of), record(path), ring(columns, interval_ns) {}
    Run run;
    std::string record;
    SampleRing ring;
    std::vector<Leader> leaders;
    std::int64_t saved_ns = 0;
    bool has_asked = false;  // the store how it is
    std::int64_t began_unix_ns = 0;
  };
  static bool is_asked_for(const Series& series, std::int64_t now_ns);
  void work();
  void take(Series* series, std::int64_t now_ns) const;
  void ask_store(Series* series);
  void note_leaders(Series* series, std::int64_t now_ns) const;
  void save(Series* series, std::int64_t now_ns);
  nlohmann::json json_of(const Series& series) const;
  nlohmann::json columns_of(const Series& series) const;
  nlohmann::json files_of(const std::vector<FileCost>& costs) const;
  nlohmann::json heat_of(const std::vector<FileCost>& costs) const;
  nlohmann::json processes_of(const Series& series) const;

  const SamplerSources from_;
  ProcessShares shares_;
  RecordWriter records_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_stopping_ = false;
  std::map<std::string, Series> runs_;
  std::deque<std::pair<std::string, nlohmann::json>> ended_;
  std::thread thread_;
};

}  // namespace cairn::node
