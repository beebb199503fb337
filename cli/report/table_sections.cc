// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/size_text.h"
#include "cli/node/json_fields.h"
#include "cli/report/html_text.h"
#include "cli/report/sections.h"
#include "cli/report/series.h"

namespace cairn::cli {
namespace {

using Json = nlohmann::json;

constexpr double kHeatHalvings = 12;  // colder parts look alike

std::string head_of(const char* id, const char* label, std::initializer_list<const char*> columns) {
  std::string html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table id=\"{}\">"
      "<thead><tr>",
      label, id);
  for (const char* column : columns) html += fmt::format("<th scope=\"col\">{}</th>", column);
  return html + "</tr></thead><tbody>";
}

constexpr const char* kTail = "</tbody></table></div>";

uint64_t waited_of(const Json& file) {
  return unsigned_field(file, "miss_bytes") + unsigned_field(file, "late_bytes") +
         unsigned_field(file, "below_bytes");
}

double file_seconds(const Json& file) {
  return number_field(file, "read_seconds") + number_field(file, "write_seconds") +
         number_field(file, "fsync_seconds");
}

std::string files_text(uint64_t count) {
  return fmt::format("{} {}", count, count == 1 ? "file was" : "files were");
}

std::string file_row(const Json& file, double most) {
  const auto seconds = [](double value) {
    return "<td>" + data_cell(value, format_duration(value)) + "</td>";
  };
  const auto bytes = [&file](const char* name) {
    return "<td>" + size_cell(unsigned_field(file, name)) + "</td>";
  };
  const double waited = file_seconds(file);
  std::string html = fmt::format("<tr><th scope=\"row\" class=\"path\">{}</th>",
                                 escaped(text_field(file, "path")));
  html += seconds(waited) + "<td>" + bar(waited, most, 3) + "</td>";
  html += seconds(number_field(file, "read_seconds"));
  html += "<td>" + size_cell(waited_of(file)) + "</td>" + bytes("miss_bytes") +
          bytes("late_bytes") + bytes("below_bytes");
  html += seconds(number_field(file, "write_seconds")) + bytes("written_bytes");
  html += seconds(number_field(file, "fsync_seconds"));
  html +=
      "<td>" +
      data_cell(number_field(file, "fsyncs"), fmt::format("{}", unsigned_field(file, "fsyncs"))) +
      "</td>";
  return html + "</tr>";
}

// The first sample from which on everything that was written is in the store; none: the last one
// still saw data that is not. The series of levels and sums are as long as the times.
std::optional<size_t> stored_from(const Series& series) {
  const std::vector<double> dirty = series.of("dirty_bytes");
  const std::vector<double> written = series.of("write_bytes");
  const std::vector<double> flushed = series.of("flushed_bytes");
  if (!series.has("dirty_bytes") || dirty.size() < 2 || dirty.back() != 0) return std::nullopt;
  size_t at = dirty.size() - 1;
  // Data may come and be stored between two samples, which see nothing of it but the sums.
  while (at > 0 && dirty[at - 1] == 0 && written[at - 1] == written[at] &&
         flushed[at - 1] == flushed[at]) {
    --at;
  }
  return at;
}

std::string stored_words(const Json& run) {
  const Series series(run);
  const bool is_stored = bool_field(run, "stored", false);
  const std::optional<size_t> at = stored_from(series);
  if (!at) return is_stored ? "at the end of the run" : "not seen in this run";
  const char* const confirmed = is_stored ? "; confirmed at the end" : "";
  if (*at == 0) return std::string("all the time: nothing was written") + confirmed;
  return fmt::format("between {} and {} after the run began, as the samples saw it{}",
                     format_duration(series.seconds()[*at - 1]),
                     format_duration(series.seconds()[*at]), confirmed);
}

double last_number(const Json& timeline, const char* name) {
  const Json& values = member(member(timeline, "series"), name);
  return values.empty() || !values.back().is_number() ? 0 : values.back().get<double>();
}

// At level store a program's fsync waits for the store itself, and the node has no part in it.
std::string fsync_words(const Json& timeline, bool has_log) {
  const bool is_counted = timeline.is_object() && timeline.contains("fsyncs");
  const std::string own =
      is_counted ? fmt::format("{} of this run", unsigned_field(timeline, "fsyncs")) : "";
  if (!has_log) return is_counted ? own + ", each answered by the store" : "not recorded";
  return fmt::format("{}{:.0f} of the node answered from the durable log, {:.0f} by the store",
                     own.empty() ? "" : own + "; ", last_number(timeline, "fsyncs_logged"),
                     last_number(timeline, "fsyncs_stored"));
}

std::string level_row(const std::string& level, const std::string& reached) {
  return fmt::format("<tr><th scope=\"row\">{}</th><td class=\"words\">{}</td></tr>",
                     escaped(level), escaped(reached));
}

}  // namespace

std::string section(const char* id, const char* heading, const std::string& body) {
  CAIRN_CHECK(id != nullptr && heading != nullptr);
  const std::string shown = body.empty() ? "<p class=\"none\">Nothing was recorded.</p>" : body;
  return fmt::format(
      "<section aria-labelledby=\"{0}-h\"><h2 id=\"{0}-h\">{1}</h2>\n{2}</section>\n", id, heading,
      shown);
}

std::string bar(double part, double whole, int colour) {
  const double width = whole <= 0 ? 0 : std::clamp(100 * part / whole, 0.0, 100.0);
  return fmt::format(
      "<span class=\"bar\" aria-hidden=\"true\"><i class=\"c{}\" "
      "style=\"width:{:.1f}%\"></i></span>",
      colour, width);
}

std::string file_section(const Json& run) {
  const Json& timeline = member(run, "timeline");
  const Json& files = member(timeline, "files");
  if (files.empty()) return "";
  double most = 0;
  for (const Json& file : files) most = std::max(most, file_seconds(file));
  std::string html = fmt::format(
      "<p>By the time that programs waited: in reads that RAM had not all of, in writes and in "
      "fsyncs. Threads and processes that wait at a time count each. {} read in all, {} "
      "written.</p>",
      files_text(unsigned_field(timeline, "files_read")),
      unsigned_field(timeline, "files_written"));
  html +=
      head_of("files", "Files",
              {"file", "waited", "against the first", "reads", "read with a wait", "from the store",
               "on their way", "file tier", "writes", "written", "fsyncs", "how many"});
  for (const Json& file : files) html += file_row(file, most);
  return section("costs", "The files that cost most", html + kTail);
}

std::string heat_section(const Json& run) {
  const Json& heat = member(member(run, "timeline"), "heat");
  const Json& cells = member(heat, "cells");
  if (cells.empty()) return "";
  double hottest = -INFINITY;
  for (const Json& cell : cells) {
    if (cell.is_number()) hottest = std::max(hottest, cell.get<double>());
  }
  const auto count = static_cast<double>(cells.size());
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {0} 10\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-labelledby=\"heat-t\" xmlns=\"http://www.w3.org/2000/svg\"><title id=\"heat-t\">Heat "
      "along the file, from its first to its last byte</title>",
      cells.size());
  size_t read = 0;
  for (size_t at = 0; at < cells.size(); ++at) {
    if (!cells[at].is_number()) continue;
    ++read;
    const double part =
        std::clamp(1 - (hottest - cells[at].get<double>()) / kHeatHalvings, 0.1, 1.0);
    svg += fmt::format(
        "<rect class=\"c3\" x=\"{}\" y=\"0\" width=\"1.05\" height=\"10\" "
        "opacity=\"{:.2f}\"/>",
        at, part);
  }
  const std::string words = fmt::format(
      "{} ({}), {:.0f} % of its parts were read. The stronger the colour, the more often and the "
      "more lately, by all programs of the node.",
      text_field(heat, "path"), format_size(unsigned_field(heat, "file_bytes")),
      100 * static_cast<double>(read) / count);
  return section("heat", "Heat of the costliest file",
                 fmt::format("<figure tabindex=\"0\" aria-labelledby=\"heat-c\"><figcaption "
                             "id=\"heat-c\">{}</figcaption><div class=\"heat\">{}</svg></div>"
                             "</figure>",
                             escaped(words), svg));
}

std::string process_section(const Json& run) {
  const Json& processes = member(member(run, "timeline"), "processes");
  const Json& list = member(processes, "list");
  if (list.empty()) return "";
  double io = 0;
  double most = 0;
  for (const Json& process : list) {
    io += number_field(process, "io_seconds");
    most = std::max(most, number_field(process, "io_seconds"));
  }
  std::string html = head_of(
      "processes", "Processes",
      {"process", "program", "I/O time", "share", "read", "read from the store", "written"});
  for (const Json& process : list) {
    const double seconds = number_field(process, "io_seconds");
    const uint64_t pid = unsigned_field(process, "pid");
    html += fmt::format(
        "<tr><th scope=\"row\">{}</th><td "
        "class=\"words\">{}</td><td>{}</td><td>{}{}</td><td>{}</td>"
        "<td>{}</td><td>{}</td></tr>",
        pid == 0 ? std::string("-") : fmt::format("{}", pid),
        escaped(text_field(process, "command")), data_cell(seconds, format_duration(seconds)),
        bar(seconds, most, 0), percent(seconds, io),
        size_cell(unsigned_field(process, "read_bytes")),
        size_cell(unsigned_field(process, "miss_bytes")),
        size_cell(unsigned_field(process, "written_bytes")));
  }
  html += kTail;
  const Json& runs = member(member(run, "status"), "runs");
  if (!runs.empty()) {
    html += fmt::format("<p>{} other {} on the node at the end.</p>", runs.size(),
                        runs.size() == 1 ? "run was" : "runs were");
  }
  return section("shares", "Processes", html);
}

std::string durability_section(const Json& run) {
  const Json& timeline = member(run, "timeline");
  const std::string level = text_field(timeline, "durability");
  if (level.empty()) return "";
  std::string rows = level_row("a finished write",
                               "is in the node's memory: it survives the death of the program "
                               "and of the node's service, not that of the machine");
  rows += level_row("a finished fsync",
                    level == "node" ? "is in the durable log of the node: it survives the machine"
                                    : "is in the backing store");
  rows += level_row("fsyncs", fsync_words(timeline, level == "node"));
  rows += level_row("all data in the store", stored_words(run));
  return section("durability", "Durability",
                 "<table id=\"levels-reached\"><tbody>" + rows + "</tbody></table>");
}

std::string error_section(const Json& run) {
  std::string items;
  const Json& status = member(run, "status");
  for (const Json& error : member(status, "errors")) {
    items += fmt::format("<li>{}: {} ({} times)</li>", escaped(text_field(error, "path")),
                         escaped(text_field(error, "message")), unsigned_field(error, "count"));
  }
  for (const Json& file : member(run, "unstored")) {
    items += fmt::format("<li>{}: {} not stored {}</li>", escaped(text_field(file, "path")),
                         format_size(unsigned_field(file, "dirty_bytes")),
                         escaped(text_field(file, "error")));
  }
  for (const Json& tier : member(status, "tiers")) {
    if (unsigned_field(tier, "failures") == 0) continue;
    items += fmt::format("<li>tier {}: {}, {} failures, {}</li>", escaped(text_field(tier, "name")),
                         escaped(text_field(tier, "state")), unsigned_field(tier, "failures"),
                         escaped(text_field(tier, "last_error")));
  }
  for (const Json& warning : member(member(run, "report"), "warnings")) {
    if (warning.is_string()) items += "<li>" + escaped(warning.get<std::string>()) + "</li>";
  }
  for (const Json& program : member(member(run, "report"), "foreign")) {
    items += fmt::format("<li>{} worked on the backing store, unbuffered: {}</li>",
                         escaped(text_field(program, "command")),
                         escaped(text_field(program, "reason")));
  }
  return section("errors", "Errors and warnings",
                 items.empty() ? "<p class=\"none\">None.</p>" : "<ul>" + items + "</ul>");
}

}  // namespace cairn::cli
