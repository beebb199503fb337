// SPDX-License-Identifier: Apache-2.0
#include "cli/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string>

#include "base/check.h"
#include "base/size_text.h"
#include "cli/node/json_fields.h"
#include "cli/report/html_text.h"
#include "cli/report/page_style.h"
#include "cli/report/sections.h"
#include "cli/report/verdict.h"

namespace cairn::cli {
namespace {

using Json = nlohmann::json;

constexpr size_t kCommandShown = 400;

std::string words_of_run(const Json& run) {
  const bool has_own = !member(run, "command_line").empty();
  const Json& words = member(has_own ? run : member(run, "timeline"), "command_line");
  std::string command;
  for (const Json& word : words) {
    if (!word.is_string()) continue;
    if (!command.empty()) command += ' ';
    command += word.get<std::string>();
  }
  std::replace_if(
      command.begin(), command.end(), [](char letter) { return letter == '\n' || letter == '\t'; },
      ' ');
  if (command.size() <= kCommandShown) return command;
  size_t end = kCommandShown;
  while (end > 0 && (static_cast<unsigned char>(command[end]) & 0xc0U) == 0x80) --end;
  return command.substr(0, end) + " ...";
}

std::string date_of(const Json& run) {
  const auto seconds =
      static_cast<std::time_t>(number_field(member(run, "timeline"), "began_unix_seconds"));
  std::tm local{};
  if (seconds == 0 || ::localtime_r(&seconds, &local) == nullptr) return "";
  char text[64];
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  CAIRN_CHECK(length > 0);
  return text;
}

std::string fact(const char* id, const char* name, const std::string& value) {
  return fmt::format("<div><dt>{}</dt><dd id=\"{}\">{}</dd></div>", name, id, value);
}

double last_value(const Json& run, const char* name) {
  const Json& values = member(member(member(run, "timeline"), "series"), name);
  return values.empty() || !values.back().is_number() ? 0 : values.back().get<double>();
}

// From the report of the end where there is one.
uint64_t total_of(const Json& run, const char* in_report, const char* series) {
  const Json& report = member(run, "report");
  return report.contains(in_report) ? unsigned_field(report, in_report)
                                    : static_cast<uint64_t>(last_value(run, series));
}

std::string facts(const Json& run) {
  const Json& report = member(run, "report");
  const double wall = run_seconds(run);
  const double io = report.contains("io_seconds") ? number_field(report, "io_seconds")
                                                  : last_value(run, "io_time_ns") / 1e9;
  const uint64_t read = total_of(run, "read_bytes", "read_bytes");
  const uint64_t missed = total_of(run, "miss_bytes", "miss_bytes");
  const uint64_t written = total_of(run, "written_bytes", "write_bytes");
  const uint64_t processes = unsigned_field(member(member(run, "timeline"), "processes"), "count");
  std::string html = "<dl class=\"facts\">";
  html += fact("wall", "Time", data_cell(wall, format_duration(wall)));
  html += fact("io", "I/O, all processes", data_cell(io, format_duration(io)));
  html += fact("read", "Read", size_cell(read));
  html +=
      fact("hit", "Found in a tier",
           percent(static_cast<double>(read - std::min(read, missed)), static_cast<double>(read)));
  html += fact("written", "Written", size_cell(written));
  html += fact("process-count", "Processes",
               data_cell(static_cast<double>(processes), fmt::format("{}", processes)));
  if (report.contains("drain_seconds")) {
    const double drained = number_field(report, "drain_seconds");
    html += fact("drained", "Stored after the end", data_cell(drained, format_duration(drained)));
  }
  return html + "</dl>";
}

std::string header_of(const Json& run, const Verdict& verdict) {
  std::string html = fmt::format(
      "<header><p class=\"kind\">Cairn report{}{}</p>\n<h1 "
      "id=\"verdict\">{}</h1>\n<p><code>{}</code></p>\n",
      date_of(run).empty() ? "" : " of the run of ", date_of(run), escaped(verdict.sentence),
      escaped(words_of_run(run)));
  for (const std::string& remark : verdict.remarks)
    html += fmt::format("<p class=\"remark\" role=\"note\">{}</p>\n", escaped(remark));
  html += facts(run);
  if (verdict.without) {
    const Json& store = member(member(run, "timeline"), "store");
    html += fmt::format(
        "<p class=\"how\" id=\"estimate\" data-low=\"{}\" data-high=\"{}\">The time without Cairn "
        "is "
        "an estimate from the speed of the backing store ({}: reads {}/s, writes {}/s). At least: "
        "the kernel's cache has what is read again, and writes cost nothing. At most: the program "
        "waits for the store for each byte.</p>",
        number_text(verdict.without->low), number_text(verdict.without->high),
        escaped(text_field(store, "from")), format_size(unsigned_field(store, "read_bandwidth")),
        format_size(unsigned_field(store, "write_bandwidth")));
  } else {
    html += fmt::format("<p class=\"how\" id=\"estimate\">{}</p>", escaped(verdict.why_not));
  }
  return html + "</header>\n";
}

}  // namespace

std::string report_page(const Json& run) {
  const Verdict verdict = verdict_of(run);
  CAIRN_CHECK(!verdict.sentence.empty());
  const std::string name = member(run, "command_line").empty() ? "a run" : words_of_run(run);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\"><head><meta "
      "charset=\"utf-8\"/>{}<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\"/><link rel=\"icon\" href=\"data:,\"/><title>{} - Cairn report</title>"
      "<style>{}</style></head>\n<body>\n{}<main>\n",
      kPageMark, escaped(name), kPageStyle, header_of(run, verdict));
  for (const auto& make :
       {advice_section, traffic_section, fetch_section, eviction_section, file_section,
        heat_section, process_section, durability_section, error_section})
    html += make(run);
  const double interval = number_field(member(run, "timeline"), "interval_seconds");
  html += fmt::format(
      "</main>\n<footer>Node {}, run {}. {}Numbers of files are of the reads that the node heard "
      "of; "
      "hits in RAM are told in part. Moves, flushes and fetches ahead are those of the whole node."
      "</footer>\n</body></html>\n",
      escaped(text_field(member(run, "timeline"), "node")), escaped(text_field(run, "run")),
      interval > 0 ? fmt::format("A sample each {}. ", format_duration(interval)) : "");
  return html;
}

}  // namespace cairn::cli
