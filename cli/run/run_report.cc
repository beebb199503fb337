// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/size_text.h"
#include "cli/node/json_fields.h"
#include "cli/run/array_text.h"
#include "cli/terminal/output.h"
#include "cli/terminal/paths.h"

namespace cairn::cli {
namespace {

constexpr size_t kUnstoredLinesMax = 20;
constexpr size_t kForeignNamesMax = 3;
constexpr size_t kReasonLengthMax = 200;
// A shorter program that did no I/O through Cairn gets no report.
constexpr double kTrivialSeconds = 1;

std::string percent_text(uint64_t part, uint64_t whole) {
  if (whole == 0) return "0 %";
  return fmt::format("{:.0f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string head_line(const RunOutcome& outcome) {
  std::string ending = fmt::format("exit status {}", outcome.exit_status);
  if (outcome.killed_by != 0) {
    ending =
        fmt::format("killed by signal {} ({})", outcome.killed_by, ::strsignal(outcome.killed_by));
  }
  const std::string where =
      outcome.private_node ? std::string() : fmt::format(" on node {}", outcome.node);
  return fmt::format("{}: {}{}, {}", base_name(outcome.command_line.front()),
                     format_duration(outcome.wall_seconds), where, ending);
}

std::string io_line(const Json& report) {
  const double io_seconds = number_field(report, "io_seconds");
  const double wall_seconds = number_field(report, "wall_seconds");
  std::string text = "  I/O time  " + format_duration(io_seconds);
  // Several processes and threads wait at the same time, so that a share of the run would mislead.
  if (wall_seconds > 0 && io_seconds <= wall_seconds) {
    text += fmt::format(", {:.1f} % of the run", 100 * io_seconds / wall_seconds);
  } else if (wall_seconds > 0) {
    text += " summed over all processes and threads";
  }
  return text;
}

std::string read_line(const Json& report) {
  const uint64_t total = unsigned_field(report, "read_bytes");
  std::string text = "  read      " + format_size(total);
  const char* separator = ": ";
  for (const auto& [tier, bytes] : member(report, "hit_bytes").items()) {
    const uint64_t hit = bytes.is_number() ? bytes.get<uint64_t>() : 0;
    if (hit == 0) continue;
    text += fmt::format("{}{} from {} ({})", separator, format_size(hit), printable(tier),
                        percent_text(hit, total));
    separator = ", ";
  }
  const uint64_t missed = unsigned_field(report, "miss_bytes");
  if (missed > 0) {
    text += fmt::format("{}{} from the backing store", separator, format_size(missed));
  }
  return text;
}

// Empty: nothing was foretold.
std::string foretold_line(const RunOutcome& outcome) {
  if (!outcome.foretold) return "";
  return fmt::format(
      "  foretold  {} {} ({} to {}) by `cairn advise`", format_duration(outcome.foretold->seconds),
      outcome.foretold->is_of_run ? "for the whole run" : "of I/O time",
      format_duration(outcome.foretold->low), format_duration(outcome.foretold->high));
}

// What this node fetched ahead, and how much of it programs used; empty: nothing.
std::string fetch_line(const Json& report) {
  uint64_t fetched = 0;
  uint64_t used = 0;
  for (const Json& fetch : member(report, "fetches")) {
    fetched += unsigned_field(fetch, "fetched_bytes");
    used += unsigned_field(fetch, "used_bytes");
  }
  if (fetched == 0) return "";
  return fmt::format("  ahead     {} fetched before it was asked for, {} of it used ({})",
                     format_size(fetched), format_size(used), percent_text(used, fetched));
}

// Empty: nobody has told of an array.
std::string array_line(const Json& report) {
  const uint64_t bytes = unsigned_field(report, "array_bytes");
  if (bytes == 0 && member(member(report, "arrays"), "datasets").empty()) return "";
  return fmt::format("  arrays    {} of what was read came as chunks of arrays",
                     format_size(bytes));
}

std::string write_line(const Json& report) {
  std::string text = "  written   " + format_size(unsigned_field(report, "written_bytes"));
  const uint64_t through = unsigned_field(report, "write_through_bytes");
  if (through > 0) {
    text += fmt::format(", {} of it straight through to the backing store", format_size(through));
  }
  return text;
}

std::string store_line(const Json& report) {
  return fmt::format(
      "  flushed   {} to the backing store, the last of it {} after the program's end",
      format_size(unsigned_field(report, "flushed_bytes")),
      format_duration(number_field(report, "drain_seconds")));
}

void add_foreign_line(const Json& report, std::vector<std::string>* lines) {
  const Json& foreign = member(report, "foreign");
  if (foreign.empty()) return;
  std::string names;
  size_t listed = 0;
  for (const Json& program : foreign) {
    if (listed == kForeignNamesMax) break;
    names += (listed++ == 0 ? "" : ", ") + printable(base_name(text_field(program, "command")));
    const std::string reason = text_field(program, "reason");
    if (!reason.empty()) names += " (" + printable(reason) + ")";
  }
  if (foreign.size() > listed) names += fmt::format(" and {} more", foreign.size() - listed);
  lines->push_back(
      fmt::format("  programs that worked on the backing store, unbuffered: {}", names));
}

}  // namespace

bool is_trivial(const RunOutcome& outcome) {
  const Json& report = member(outcome.end, "report");
  return !outcome.private_node && outcome.wall_seconds < kTrivialSeconds &&
         bool_field(outcome.end, "stored", false) && outcome.not_loaded_reason.empty() &&
         unsigned_field(report, "read_bytes") == 0 &&
         unsigned_field(report, "written_bytes") == 0 && member(report, "foreign").empty() &&
         outcome.killed_by == 0;
}

std::vector<std::string> report_lines(const RunOutcome& outcome) {
  const Json& report = member(outcome.end, "report");
  std::vector<std::string> lines = {head_line(outcome)};
  const bool has_io = unsigned_field(report, "read_bytes") > 0 ||
                      unsigned_field(report, "written_bytes") > 0 ||
                      unsigned_field(report, "flushed_bytes") > 0;
  if (!outcome.not_loaded_reason.empty()) {
    lines.push_back(fmt::format("  the library was never loaded: {}", outcome.not_loaded_reason));
  } else if (!has_io) {
    lines.push_back("  no I/O on buffered files");
  }
  if (has_io) lines.push_back(io_line(report));
  if (has_io || (outcome.foretold && outcome.foretold->is_of_run)) {
    if (const std::string foretold = foretold_line(outcome); !foretold.empty())
      lines.push_back(foretold);
  }
  if (has_io) {
    if (unsigned_field(report, "read_bytes") > 0) lines.push_back(read_line(report));
    if (const std::string arrays = array_line(report); !arrays.empty()) lines.push_back(arrays);
    for (std::string& line : array_lines(member(report, "arrays")))
      lines.push_back(std::move(line));
    if (!outcome.old_hdf5.empty())
      lines.push_back(
          fmt::format("  arrays    buffered as bytes: {} is HDF5 older than 1.14, "
                      "which loads no connector",
                      printable(outcome.old_hdf5)));
    if (const std::string ahead = fetch_line(report); outcome.private_node && !ahead.empty())
      lines.push_back(ahead);
    if (unsigned_field(report, "written_bytes") > 0) lines.push_back(write_line(report));
    if (unsigned_field(report, "flushed_bytes") > 0) lines.push_back(store_line(report));
  }
  for (const Json& hint : member(member(report, "arrays"), "hints"))
    lines.push_back("  warning   " + printable(hint.is_string() ? hint.get<std::string>() : ""));
  add_foreign_line(report, &lines);
  // On a node that others use, too, `cairn status` has them.
  if (outcome.private_node) {
    for (const Json& warning : member(report, "warnings"))
      lines.push_back("  warning   " + printable(warning.get<std::string>()));
  }
  const uint64_t clients_left = unsigned_field(report, "clients_left");
  if (clients_left > 0) {
    lines.push_back(
        fmt::format("  {} {} of the run still running; what they write from now on is not "
                    "in this report",
                    clients_left, clients_left == 1 ? "process is" : "processes are"));
  }
  return lines;
}

std::string unstored_reason(const Json& file) {
  std::string text = printable(text_field(file, "error"));
  if (text.empty()) return "waiting to be written";
  const Json& ranges = member(file, "unreadable");
  if (ranges.empty()) return text;
  text += "; its tier does not give bytes";
  const char* separator = " ";
  for (const Json& range : ranges) {
    const uint64_t offset = unsigned_field(range, "offset");
    text += fmt::format("{}{}-{}", separator, offset, offset + unsigned_field(range, "length") - 1);
    separator = ", ";
    if (text.size() > kReasonLengthMax) return text + ", ...";
  }
  return text;
}

std::vector<std::string> unstored_lines(const std::string& node, const Json& unstored,
                                        uint64_t unstored_total) {
  std::vector<std::string> lines;
  const uint64_t total = std::max<uint64_t>(unstored_total, unstored.size());
  if (total == 0) {
    return {
        fmt::format("NOT STORED for certain: the backing store has not confirmed (fsync) what it "
                    "got from node {}",
                    node),
        fmt::format("retry: cairn drain --node {}", node)};
  }
  lines.push_back(fmt::format("NOT STORED: {} {} on the backing store yet; node {} keeps the data",
                              total, total == 1 ? "file is not wholly" : "files are not wholly",
                              node));
  for (const Json& file : unstored) {
    if (lines.size() > kUnstoredLinesMax) break;
    lines.push_back(fmt::format("  {}: {} left, {}", printable(text_field(file, "path")),
                                format_size(unsigned_field(file, "dirty_bytes")),
                                unstored_reason(file)));
  }
  const uint64_t listed = lines.size() - 1;
  if (total > listed) {
    lines.push_back(
        fmt::format("  and {} more; `cairn status --node {}` lists them", total - listed, node));
  }
  lines.push_back(fmt::format("retry: cairn drain --node {}", node));
  return lines;
}

std::vector<std::string> kept_lines(const std::string& node, const Json& kept) {
  if (!kept.is_object() || kept.empty()) return {};
  const std::string place = printable(text_field(kept, "directory"));
  if (!bool_field(kept, "is_known", false)) {
    return {
        fmt::format("whether the durable tier in {} has it is not known, as the backing store does "
                    "not answer: should node {} be killed first, `cairn recover {}` stores what is "
                    "there",
                    place, node, place)};
  }
  const uint64_t refused = unsigned_field(kept, "refused");
  const std::string most =
      refused == 0 ? "all of it" : fmt::format("all but {} of the files", refused);
  return {
      fmt::format("the durable tier in {} has {}: should node {} be killed first, "
                  "`cairn recover {}` stores it",
                  place, most, node, place)};
}

Json report_json(const RunOutcome& outcome, int final_exit_status) {
  Json json = {
      {"node", outcome.node},
      {"run", outcome.run_id},
      {"command_line", outcome.command_line},
      {"wall_seconds", outcome.wall_seconds},
      {"program_exit_status", outcome.exit_status},
      {"killed_by_signal", outcome.killed_by},
      {"exit_status", final_exit_status},
      {"stored", bool_field(outcome.end, "stored", false)},
      {"unstored", member(outcome.end, "unstored")},
      {"report", outcome.end.is_object() && outcome.end.contains("report") ? outcome.end["report"]
                                                                           : Json::object()}};
  if (!outcome.not_loaded_reason.empty()) json["not_loaded"] = outcome.not_loaded_reason;
  if (!outcome.old_hdf5.empty()) json["old_hdf5"] = outcome.old_hdf5;
  if (outcome.foretold) {
    json[outcome.foretold->is_of_run ? "foretold_run_seconds" : "foretold_io_seconds"] = {
        {"expected", outcome.foretold->seconds},
        {"low", outcome.foretold->low},
        {"high", outcome.foretold->high}};
  }
  return json;
}

}  // namespace cairn::cli
