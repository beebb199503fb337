// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/size_text.h"
#include "cli/node/json_fields.h"
#include "cli/report/chart.h"
#include "cli/report/html_text.h"
#include "cli/report/run_charts.h"
#include "cli/report/sections.h"
#include "cli/report/series.h"

namespace cairn::cli {
namespace {

using Json = nlohmann::json;

std::string totals_table(const Json& run, const Series& series) {
  std::string rows;
  const auto row = [&rows](const std::string& words, double bytes, double whole) {
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>", escaped(words),
                        size_cell(static_cast<uint64_t>(bytes)), percent(bytes, whole));
  };
  const double read = series.last("read_bytes");
  const double written = series.last("write_bytes");
  if (read > 0) {
    row("read", read, read);
    for (const std::string& tier : tier_names(run)) {
      if (series.has("hit_bytes." + tier))
        row("read from " + tier, series.last("hit_bytes." + tier), read);
    }
    row("read from the store", series.last("miss_bytes"), read);
  }
  if (written > 0) {
    row("written", written, written);
    row("written straight to the store", series.last("write_through_bytes"), written);
  }
  if (rows.empty()) return "";
  return "<table id=\"totals\"><thead><tr><th scope=\"col\">bytes</th><th scope=\"col\">in all</th>"
         "<th scope=\"col\">share</th></tr></thead><tbody>" +
         rows + "</tbody></table>";
}

std::string leader_table(const Json& timeline) {
  const Json& leaders = member(timeline, "leaders");
  if (leaders.empty()) return "";
  std::string html =
      "<h3>Experts that the learner of eviction followed</h3><table id=\"leaders\"><thead><tr><th "
      "scope=\"col\">from</th><th scope=\"col\" class=\"words\">tier</th><th scope=\"col\" "
      "class=\"words\">expert</th></tr></thead>"
      "<tbody>";
  for (const Json& each : leaders) {
    const double at = number_field(each, "seconds");
    html += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"words\">{}</td><td class=\"words\">{}</td></tr>",
        data_cell(at, format_duration(at)), escaped(text_field(each, "tier")),
        escaped(text_field(each, "expert")));
  }
  return html + "</tbody></table>";
}

}  // namespace

std::string traffic_section(const Json& run) {
  const Series series(run);
  return section("traffic", "Reads and writes over time",
                 chart_figure(chart_of(run, RunChart::kReads)) +
                     chart_figure(chart_of(run, RunChart::kHits)) +
                     chart_figure(chart_of(run, RunChart::kWrites)) +
                     chart_figure(chart_of(run, RunChart::kFlushes)) +
                     chart_figure(chart_of(run, RunChart::kLevels)) + totals_table(run, series));
}

std::string fetch_section(const Json& run) {
  const Series series(run);
  std::string rows;
  int predictor = 0;
  for (const std::string& name : predictors_of(run)) {
    const double fetched = series.last("fetched_bytes." + name);
    const double used = series.last("used_ahead_bytes." + name);
    const double vain = series.last("evicted_unused_bytes." + name);
    const int colour = predictor++ % Chart::kColours;
    rows += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}{}</td><td>{}</td></tr>",
        escaped(name), size_cell(static_cast<uint64_t>(fetched)),
        size_cell(static_cast<uint64_t>(used)), bar(used, fetched, colour), percent(used, fetched),
        size_cell(static_cast<uint64_t>(vain)));
  }
  if (rows.empty()) return "";
  return section(
      "fetched", "What was fetched ahead",
      chart_figure(chart_of(run, RunChart::kAhead)) +
          "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Predictors\">"
          "<table id=\"predictors\"><thead><tr><th scope=\"col\">predictor</th><th "
          "scope=\"col\">fetched</th><th scope=\"col\">used</th><th scope=\"col\">share "
          "used</th><th scope=\"col\">evicted unused</th></tr></thead><tbody>" +
          rows + "</tbody></table></div>");
}

std::string eviction_section(const Json& run) {
  const std::string body =
      chart_figure(chart_of(run, RunChart::kMoves)) + leader_table(member(run, "timeline"));
  return body.empty() ? "" : section("evictions", "Eviction", body);
}

}  // namespace cairn::cli
