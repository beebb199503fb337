// SPDX-License-Identifier: Apache-2.0
#include "cli/advice/trace_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/trace/trace_input.h"
#include "policy/miss_ratios/expert_curves.h"
#include "policy/miss_ratios/sampled_pages.h"
#include "policy/miss_ratios/sampled_stream.h"
#include "policy/replacement/experts.h"

namespace cairn::cli {
namespace {

// Those that a configuration can name and that stand for the others: one follows whichever is best.
constexpr std::array<std::string_view, 3> kCompared = {"ws-plus", "lru", "lfu"};

class WorkloadReader {
 public:
  void add(const TraceEvent& event) {
    if (event.kind == TraceKind::kOpen) summary_.add_open();
    if (event.kind == TraceKind::kSync) {
      syncs_ += 1;
      sync_seconds_ += event.length * kMicrosecond;
    }
    if (event.kind == TraceKind::kOpen || event.kind == TraceKind::kClose ||
        event.kind == TraceKind::kAdvice || event.kind == TraceKind::kSync) {
      return;
    }
    const bool writes = event.kind == TraceKind::kWrite;
    const advice::Access access{
        .time_ns = event.time_ns,
        .offset = event.offset,
        .length = event.length,
        .file = event.file,
        .stream = std::uint64_t{event.process} << 32 | event.stream,
        .process = event.process,
        .is_write = writes,
        .was_hit = event.kind == TraceKind::kReadHit || event.kind == TraceKind::kReadPrefetched};
    summary_.add(access, [&](std::uint64_t block) {
      const std::uint64_t key = (std::uint64_t{event.file} << 40) ^ block;
      all_.reference(key);
      stream_.reference(key);
      writes ? reads_.touch(key) : reads_.reference(key);
    });
  }

  advice::Workload workload(const TraceSource& trace) const {
    advice::Workload work;
    work.accesses = summary_.summary();
    if (trace.has_syncs()) work.accesses.fsyncs = syncs_;
    if (syncs_ > 0) work.accesses.fsync_wait_seconds = sync_seconds_ / syncs_;
    if (trace.io_ns() > 0) {
      constexpr double kNsPerSecond = 1e9;
      work.accesses.run_io_seconds =
          static_cast<double>(trace.io_ns()) / kNsPerSecond + sync_seconds_;
    }
    work.reuse.reads = reads_.curve();
    work.reuse.all = all_.curve();
    work.reuse.blocks = all_.pages();
    work.reuse.hot_blocks = all_.hot_set_pages();
    work.reuse.is_sampled = all_.rate() < 1;
    add_experts(&work.reuse);
    CAIRN_CHECK(work.reuse.blocks >= 0);
    return work;
  }

 private:
  void add_experts(advice::Reuse* reuse) const {
    constexpr unsigned kPerDoubling = 1;
    const auto blocks = static_cast<std::uint64_t>(std::ceil(reuse->blocks));
    const auto capacities = log_spaced_capacities(blocks, kPerDoubling);
    for (const ExpertMaker& maker : kExpertMakers) {
      if (std::ranges::find(kCompared, std::string_view(maker.name)) == kCompared.end()) continue;
      reuse->experts.push_back({maker.name, expert_curve(stream_, maker, capacities)});
    }
  }

  // Fewer references than usual: this is for a choice between experts, not for a curve.
  static constexpr std::size_t kSimulatedMax = std::size_t{1} << 19;

  static constexpr double kMicrosecond = 1e-6;

  advice::SummaryBuilder summary_;
  double syncs_ = 0;
  double sync_seconds_ = 0;
  SampledPages all_;
  SampledPages reads_;
  SampledStream stream_{{.pages_max = 10'000, .references_max = kSimulatedMax, .seed = 0}};
};

advice::Workload read_any_workload(const std::string& path) {
  const auto trace = open_trace_or_fail(path);
  WorkloadReader reader;
  for (TraceEvent event; trace->next(&event);) reader.add(event);
  require_whole(*trace, "record it again, or cut it off before that");
  say_warning(*trace);
  return reader.workload(*trace);
}

}  // namespace

advice::Workload read_workload(const std::string& path) {
  advice::Workload work = read_any_workload(path);
  if (work.accesses.is_empty())
    throw Failure(
        fmt::format("{}: there are no reads and no writes in it, so there is nothing that "
                    "Cairn could make faster",
                    printable(path)),
        "`cairn trace info` shows the events of a trace; only files below the directories "
        "that were buffered (--buffer) are in one");
  return work;
}

advice::Workload read_workload(const std::string& path, const std::string& program) {
  advice::Workload work = read_any_workload(path);
  if (work.accesses.is_empty())
    throw Failure(fmt::format("{} has made no reads and no writes of files that Cairn buffers, so "
                              "there is nothing that Cairn could make faster",
                              printable(program)),
                  "only files below the working directory, or those that --buffer names, are "
                  "recorded; `cairn run` says whether the program can be buffered at all");
  return work;
}

}  // namespace cairn::cli
