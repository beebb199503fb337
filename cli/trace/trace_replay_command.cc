// SPDX-License-Identifier: Apache-2.0
//
// `cairn trace replay`: runs a trace through replacement policies, or with --files repeats it on
// files, natively or under `cairn run`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/size_text.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/trace/trace_command.h"
#include "cli/trace/trace_input.h"
#include "cli/trace/trace_player.h"
#include "cli/trace/trace_replay.h"

namespace cairn::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ReplayWords {
  std::string trace;
  // Through policies.
  ReplayOptions policies;
  std::string page;
  // On files.
  std::string directory;
  std::string pace = "none";
  double pause_per_mib = 0;
  std::string call;
  std::uint64_t first = 0;
  unsigned processes = 1;
  bool make = false;
  bool verify = false;
  bool reads = false;
  bool overwrite = false;
  bool json = false;
};

// ---- through policies --------------------------------------------------------------------------

std::string replay_text(const ReplayTable& table, const ReplayOptions& options) {
  std::string text =
      fmt::format("{} references to {} pages of {}; misses in percent\n", table.references,
                  table.footprint_pages, format_size(options.page_bytes));
  std::vector<std::string> head = {"cache", "pages", "best possible"};
  head.insert(head.end(), options.experts.begin(), options.experts.end());
  std::vector<std::vector<std::string>> rows = {head};
  const auto percent = [&](uint64_t misses) {
    const auto of = static_cast<double>(std::max<uint64_t>(table.references, 1));
    return fmt::format("{:.1f}", 100 * static_cast<double>(misses) / of);
  };
  for (std::size_t at = 0; at < table.rows.size(); ++at) {
    const ReplayRow& row = table.rows[at];
    std::vector<std::string> cells = {fmt::format("{:g} %", options.percents[at]),
                                      std::to_string(row.pages), percent(row.misses_min)};
    for (const uint64_t misses : row.misses) cells.push_back(percent(misses));
    rows.push_back(std::move(cells));
  }
  return text + format_table(rows, std::string(head.size(), 'r'));
}

int replay_through_policies(ReplayWords& words) {
  ReplayOptions& options = words.policies;
  if (!words.page.empty()) options.page_bytes = size_argument("--page", words.page);
  if (options.experts.empty()) options.experts = {"ws-plus", "learned", "s3-fifo", "lirs", "lru"};
  check_experts(options.experts);
  const auto trace = open_trace_or_fail(words.trace);
  const auto table = replay(*trace, options);
  if (!table) throw Failure(table.status().message(), "record it again, or cut it off before that");
  print(replay_text(table.value(), options));
  say_warning(*trace);
  return kExitOk;
}

// ---- on files ----------------------------------------------------------------------------------

PlayPace pace_of(const ReplayWords& words) {
  PlayPace pace;
  pace.pause_ns_per_byte = words.pause_per_mib * static_cast<double>(kNanosPerSecond) / (1 << 20);
  if (words.pace == "keep") {
    pace.keeps_times = true;
  } else if (words.pace != "none") {
    char* end = nullptr;
    const double seconds = std::strtod(words.pace.c_str(), &end);
    if (words.pace.empty() || *end != '\0' || !(seconds >= 0 && seconds <= 3600))
      throw Failure(fmt::format("--pace: \"{}\" is no pace", words.pace),
                    "say keep, none, or seconds of computation after each access such as 0.004");
    pace.pause_ns = std::llround(seconds * static_cast<double>(kNanosPerSecond));
  }
  return pace;
}

PlayOptions play_options_of(const ReplayWords& words) {
  PlayOptions options;
  options.trace = words.trace;
  options.pace = pace_of(words);
  options.processes = words.processes;
  options.verifies = words.verify;
  options.selection.reads_only = words.reads;
  if (words.first != 0) options.selection.accesses_max = words.first;
  if (!words.call.empty()) {
    const std::uint64_t bytes = size_argument("--call", words.call);
    options.selection.call_bytes_max =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, UINT32_MAX));
  }
  return options;
}

double seconds_of(std::int64_t nanos) { return static_cast<double>(nanos) / kNanosPerSecond; }

void show_made(const ReplayWords& words, const PlayedFiles::Made& made) {
  if (words.json) {
    print(Json({{"files", made.files}, {"made_bytes", made.bytes}}).dump() + "\n");
  } else {
    print(fmt::format("{}: {} files, {} made\n", printable(words.directory), made.files,
                      format_size(made.bytes)));
  }
}

void show_played(const ReplayWords& words, const PlayTotals& totals, const PlayPlan& plan) {
  if (words.json) {
    print(Json({{"accesses", totals.reads + totals.writes},
                {"reads", totals.reads},
                {"writes", totals.writes},
                {"opens", totals.opens},
                {"read_bytes", totals.read_bytes},
                {"written_bytes", totals.written_bytes},
                {"seconds", seconds_of(totals.wall_ns)},
                {"io_seconds", seconds_of(totals.io_ns)},
                {"files", plan.files_used},
                {"processes", totals.processes},
                {"verified", words.verify}})
              .dump() +
          "\n");
    return;
  }
  print(fmt::format(
      "{}: {} accesses to {} files in {}, {} of it in calls{}\n{} read, {} written, {} opens{}\n",
      printable(words.trace), totals.reads + totals.writes, plan.files_used,
      format_duration(seconds_of(totals.wall_ns)), format_duration(seconds_of(totals.io_ns)),
      totals.processes == 1 ? "" : fmt::format(" of {} processes", totals.processes),
      format_size(totals.read_bytes), format_size(totals.written_bytes), totals.opens,
      words.verify ? "; all bytes read are right" : ""));
}

int replay_on_files(const ReplayWords& words) {
  const PlayOptions options = play_options_of(words);
  PlayedTrace trace(open_trace_or_fail(words.trace), options.selection);
  const PlayPlan plan = plan_of(trace, options.processes == 1);
  if (plan.files_used == 0)
    throw Failure(fmt::format("{}: there is nothing in it to play", printable(words.trace)),
                  "`cairn trace info` shows the events of a trace");
  const PlayedFiles files(plan, words.directory);
  if (words.make) {
    show_made(words, files.make());
  } else {
    files.prepare(words.overwrite || words.verify);
    show_played(words, play_trace(options, plan, files), plan);
  }
  say_warning(trace.source());
  return kExitOk;
}

// ------------------------------------------------------------------------------------------------

void add_policy_options(CLI::App& app, ReplayWords& words) {
  add_list(app, "--expert", words.policies.experts,
           "An expert of replacement (default: the usual ones)", "NAME");
  add_text(app, "--page", words.page, "Bytes of one reference (default: 512K)", "SIZE");
}

void add_play_options(CLI::App& app, ReplayWords& words) {
  add_text(app, "--files", words.directory,
           "Repeat the accesses on the files of the same names below DIR", "DIR");
  app.add_flag("--make", words.make, "Only make the missing files that the trace reads");
  app.add_flag("--verify", words.verify, "Compare all bytes read with those that --make writes");
  app.add_flag("--reads", words.reads, "Leave writes out");
  app.add_flag("--overwrite", words.overwrite, "Write to files that exist, whatever they hold");
  add_text(app, "--pace", words.pace,
           "keep (the times of the trace), none (the default), or seconds after each access",
           "PACE");
  app.add_option("--pace-mib", words.pause_per_mib, "SECONDS more for each MiB of the access")
      ->type_name("SECONDS")
      ->check(number_between(0.0, 3600.0));
  add_text(app, "--call", words.call, "Longer accesses become several calls of SIZE", "SIZE");
  app.add_option("--first", words.first, "Play the first NUMBER accesses only")
      ->type_name("NUMBER")
      ->check(CLI::PositiveNumber);
  app.add_option(
         "--processes", words.processes,
         "Processes that share the ranks (default: one plays all, in the order of the trace)")
      ->type_name("NUMBER")
      ->check(CLI::Range(1U, 4096U));
  app.add_flag("--json", words.json, "One JSON object instead of the text");
  CLI::Option* const files = app.get_option("--files");
  for (const char* option : {"--make", "--verify", "--reads", "--overwrite", "--pace", "--pace-mib",
                             "--call", "--first", "--processes", "--json"})
    app.get_option(option)->needs(files);
  for (const char* option : {"--expert", "--page"}) app.get_option(option)->excludes(files);
}

}  // namespace

int replay_trace(const Arguments& arguments) {
  CLI::App app(
      "Counts what replacement policies would have missed of a trace; or, with --files, repeats "
      "its\n"
      "opens, reads, writes and closes by plain POSIX calls.",
      "cairn trace replay");
  ReplayWords words;
  app.add_option("path", words.trace, "The trace")->type_name("TRACE")->required();
  add_policy_options(app, words);
  add_play_options(app, words);
  app.footer(
      "Examples:\n"
      "  cairn trace replay --expert ws-plus --expert lru job.trace\n"
      "  cairn trace replay --files /pfs/again --make job.trace\n"
      "  cairn run --buffer /pfs/again -- \\\n"
      "      cairn trace replay --files /pfs/again --verify --pace keep job.trace");
  parse(app, arguments);
  return words.directory.empty() ? replay_through_policies(words) : replay_on_files(words);
}

}  // namespace cairn::cli
