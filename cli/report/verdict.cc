// SPDX-License-Identifier: Apache-2.0
#include "cli/report/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/size_text.h"
#include "cli/node/json_fields.h"

namespace cairn::cli {
namespace {

using Json = nlohmann::json;

constexpr double kStoreSpread = 0.1;

double last_of(const Json& timeline, const char* series) {
  const Json& values = member(member(timeline, "series"), series);
  return values.empty() || !values.back().is_number() ? 0 : values.back().get<double>();
}

double fetched_bytes(const Json& timeline) {
  double sum = 0;
  for (const auto& [name, values] : member(timeline, "series").items()) {
    if (name.rfind("fetched_bytes.", 0) == 0) sum += last_of(timeline, name.c_str());
  }
  return sum;
}

void estimate(const Json& run, const RunTotals& totals, Verdict* verdict) {
  const Json& store = member(member(run, "timeline"), "store");
  const double read_rate = number_field(store, "read_bandwidth");
  const double write_rate = number_field(store, "write_bandwidth");
  if (!bool_field(store, "measured", false) || read_rate <= 0 || write_rate <= 0) {
    verdict->why_not =
        "The time without Cairn is not estimated: the backing store has not been measured. "
        "`cairn profile DIRECTORY` measures it, and the next report has the estimate.";
    return;
  }
  if (totals.read + totals.written <= 0 || totals.wall <= 0) {
    verdict->why_not = "The time without Cairn is not estimated: the run did no buffered I/O.";
    return;
  }
  const double outside = std::max(0.0, totals.wall - totals.io / totals.processes);
  const double came = std::min(totals.read, totals.missed + fetched_bytes(member(run, "timeline")));
  TimeEstimate without;
  without.low = outside + came / (read_rate * (1 + kStoreSpread));
  without.high = outside + totals.read / (read_rate * (1 - kStoreSpread)) +
                 totals.written / (write_rate * (1 - kStoreSpread));
  CAIRN_CHECK(without.low <= without.high);
  verdict->without = without;
}

void add_remarks(const Json& run, std::vector<std::string>* remarks) {
  if (!bool_field(run, "ended", false)) {
    remarks->push_back(
        bool_field(run, "is_running", false)
            ? "The run is still under way: this is what its node has recorded so far."
            : "The run never ended, or its node or machine died: this is what was recorded until "
              "then. Whether all of its data is stored is not known from here.");
  } else if (!bool_field(run, "stored", false)) {
    remarks->push_back("NOT everything that the run wrote is known to be in the backing store.");
  }
  if (const std::string note = text_field(run, "timeline_note"); !note.empty())
    remarks->push_back("The timeline is not complete: " + note + ".");
  const uint64_t restarts = unsigned_field(member(run, "status"), "restarts");
  if (restarts != 0)
    remarks->push_back(fmt::format(
        "The node's service was killed and started again ({} times since the node began).",
        restarts));
  if (unsigned_field(run, "killed_by_signal") != 0)
    remarks->push_back(fmt::format("The program was killed by signal {}.",
                                   unsigned_field(run, "killed_by_signal")));
  if (const std::string reason = text_field(run, "not_loaded"); !reason.empty())
    remarks->push_back("Cairn never got into the program: " + reason + ".");
}

}  // namespace

RunTotals totals_of(const Json& run) {
  const Json& report = member(run, "report");
  const Json& timeline = member(run, "timeline");
  RunTotals totals;
  totals.wall = run_seconds(run);
  const bool has_report = report.contains("io_seconds");
  totals.io =
      has_report ? number_field(report, "io_seconds") : last_of(timeline, "io_time_ns") / 1e9;
  totals.read = has_report ? number_field(report, "read_bytes") : last_of(timeline, "read_bytes");
  totals.written =
      has_report ? number_field(report, "written_bytes") : last_of(timeline, "write_bytes");
  totals.missed = has_report ? number_field(report, "miss_bytes") : last_of(timeline, "miss_bytes");
  // Those alone that have done I/O wait for it.
  double waiting = 0;
  for (const Json& process : member(member(timeline, "processes"), "list"))
    waiting += number_field(process, "io_seconds") > 0 ? 1 : 0;
  totals.processes = std::max(1.0, waiting);
  return totals;
}

double run_seconds(const Json& run) {
  const double wall = number_field(run, "wall_seconds");
  return wall > 0 ? wall : number_field(member(run, "timeline"), "seconds");
}

Verdict verdict_of(const Json& run) {
  const RunTotals totals = totals_of(run);
  Verdict verdict;
  add_remarks(run, &verdict.remarks);
  if (totals.read + totals.written <= 0) {
    verdict.sentence = fmt::format("No I/O on buffered files in {}.", format_duration(totals.wall));
  } else if (totals.processes > 1) {
    verdict.sentence = fmt::format("I/O took {} of {} in each of {:.0f} processes on average.",
                                   format_duration(totals.io / totals.processes),
                                   format_duration(totals.wall), totals.processes);
  } else {
    verdict.sentence =
        fmt::format("I/O took {} of {}.", format_duration(totals.io), format_duration(totals.wall));
  }
  estimate(run, totals, &verdict);
  if (verdict.without) {
    verdict.sentence +=
        fmt::format(" Without Cairn about {} ({} to {}), by estimate.",
                    format_duration(verdict.without->middle()),
                    format_duration(verdict.without->low), format_duration(verdict.without->high));
  }
  return verdict;
}

}  // namespace cairn::cli
