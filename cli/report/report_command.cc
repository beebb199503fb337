// SPDX-License-Identifier: Apache-2.0
#include "cli/report/report_command.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/size_text.h"
#include "cli/node/json_fields.h"
#include "cli/report/page.h"
#include "cli/report/report_file.h"
#include "cli/report/run_charts.h"
#include "cli/report/run_records.h"
#include "cli/report/verdict.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

using Json = nlohmann::json;

std::string command_text(const Json& record) {
  const Json& timeline = member(record, "timeline");
  std::string text;
  for (const Json& word : member(timeline.empty() ? record : timeline, "command_line")) {
    if (word.is_string()) text += (text.empty() ? "" : " ") + word.get<std::string>();
  }
  return text.size() > 60 ? text.substr(0, 60) + " ..." : text;
}

int list_runs(const RunRecords& records) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : records.names()) {
    try {
      const Json record = records.load(name);
      const char* state = bool_field(record, "ended", false)        ? "ended"
                          : bool_field(record, "is_running", false) ? "runs"
                                                                    : "never ended";
      rows.push_back(
          {name, format_duration(run_seconds(record)), state, printable(command_text(record))});
    } catch (const Failure& failure) {
      rows.push_back({name, "", "damaged", ""});
    }
  }
  if (rows.empty()) (void)records.load("");  // says that there is none
  rows.insert(rows.begin(), {"RUN", "TIME", "STATE", "PROGRAM"});
  print(format_table(rows, "lrll"));
  return kExitOk;
}

void print_verdict(const Json& record) {
  const Verdict verdict = verdict_of(record);
  CAIRN_CHECK(!verdict.sentence.empty());
  print(fmt::format("{}\n  {}\n", verdict.sentence, printable(command_text(record))));
  for (const std::string& remark : verdict.remarks) print("  " + printable(remark) + "\n");
  if (!verdict.why_not.empty()) print("  " + verdict.why_not + "\n");
  print("`cairn report -o FILE.html` makes the page, `--list` names the runs.\n");
}

void draw_charts(const ReportOptions& options, const Json& record, const DrawCharts& draw) {
  const PictureLines lines = picture_lines_of(record);
  if (lines.ids.empty())
    throw Failure("--png: this run has no chart that shows anything",
                  "runs of a second or longer that read or write have; `cairn report --list` names "
                  "those that are kept");
  for (const std::string& id : lines.ids) {
    const std::string path = options.pictures + "/" + id + ".png";
    struct stat status{};
    if (!options.force && ::lstat(path.c_str(), &status) == 0)
      throw Failure(fmt::format("--png {}: the file is there already", printable(path)),
                    "name another directory, or add --force to replace it");
  }
  const bool is_made = ::mkdir(options.pictures.c_str(), 0777) == 0;
  struct stat status{};
  const int error = is_made || errno == EEXIST ? 0 : errno;
  if (error != 0 || ::stat(options.pictures.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    throw Failure(fmt::format("--png {}: {}", printable(options.pictures),
                              std::strerror(error != 0 ? error : ENOTDIR)),
                  "name a directory that you may write");
  draw(lines.text, options.pictures);
  for (const std::string& id : lines.ids)
    say(fmt::format("{}/{}.png", printable(options.pictures), id));
}

int show_report(const ReportOptions& options, const DrawCharts& draw) {
  if (!options.output.empty()) check_report_place("-o", options.output, options.force);
  const RunRecords records;
  if (options.list) return list_runs(records);
  const Json record = records.load(options.run);
  if (!options.output.empty())
    write_report_file("-o", options.output, report_page(record),
                      "name a file where there is room and that you may write");
  if (!options.pictures.empty()) draw_charts(options, record, draw);
  if (options.json) {
    print(record.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } else if (options.output.empty() && options.pictures.empty()) {
    print_verdict(record);
  }
  return kExitOk;
}

}  // namespace

int command_report(const Arguments& arguments, const DrawCharts& draw) {
  CLI::App app(
      "Shows what a run did, its verdict, its page, its data: of the last ones that had a node of "
      "their own and took a second or longer, or were started with `cairn run --report`.",
      "cairn report");
  ReportOptions options;
  std::vector<std::string> runs;
  app.add_option("run", runs,
                 "The run, by name or process id of its `cairn run` (default: the last)")
      ->type_name("RUN")
      ->expected(0, 1);
  add_text(app, "-o,--output", options.output, "Write the page to FILE", "FILE.html");
  app.add_flag("--json", options.json, "The data as JSON; documented in docs/reference.md");
  app.add_flag("--list", options.list, "Name the runs that are kept, the last first");
  add_text(app, "--png", options.pictures,
           "Draw each chart as DIR/CHART.png (python3 with matplotlib)", "DIR");
  app.add_flag("--force", options.force,
               "Replace FILE although it is not a report, and pictures in DIR");
  app.footer(
      "Runs that never ended, and those whose node died, are shown as far as they were "
      "recorded.\n\n"
      "Examples:\n"
      "  cairn report -o run.html\n"
      "  cairn report --list\n"
      "  cairn report --png pictures\n"
      "  cairn report 4711 --json | jq .timeline.files");
  parse(app, arguments);
  if (!runs.empty()) options.run = runs.front();
  return show_report(options, draw);
}

}  // namespace cairn::cli
