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
#include "cli/report/sections.h"

namespace cairn::cli {
namespace {

using Json = nlohmann::json;

// The tiers have these from the fastest down; the store and what goes past the tiers have others.
constexpr int kTierColours[] = {0, 1, 2, 6};
constexpr int kStoreColour = 3;
constexpr int kThroughColour = 4;

// The series of a timeline, as numbers of equal length.
class Series {
 public:
  explicit Series(const Json& run) : series_(member(member(run, "timeline"), "series")) {
    for (const Json& each : member(series_, "seconds"))
      seconds_.push_back(each.is_number() ? each.get<double>() : 0);
  }
  const std::vector<double>& seconds() const { return seconds_; }
  bool has(const std::string& name) const { return series_.is_object() && series_.contains(name); }
  std::vector<double> of(const std::string& name) const {
    std::vector<double> values;
    for (const Json& each : member(series_, name.c_str()))
      values.push_back(each.is_number() ? each.get<double>() : 0);
    values.resize(seconds_.size(), values.empty() ? 0 : values.back());
    return values;
  }
  std::vector<double> rate(const std::string& name) const { return rates(of(name), seconds_); }
  double last(const std::string& name) const {
    const std::vector<double> values = of(name);
    return values.empty() ? 0 : values.back();
  }

 private:
  const Json& series_;
  std::vector<double> seconds_;
};

std::vector<std::string> tier_names(const Json& run) {
  std::vector<std::string> names;
  for (const Json& tier : member(member(run, "timeline"), "tiers"))
    names.push_back(text_field(tier, "name"));
  return names;
}

int tier_colour(size_t tier) { return kTierColours[std::min<size_t>(tier, 3)]; }

Chart chart_of(const Json& run, const Series& series, const char* id, const char* title) {
  Chart chart;
  chart.id = id;
  chart.title = title;
  chart.seconds = series.seconds();
  // While the rest is stored, the samples go on.
  const double drained = number_field(member(run, "report"), "drain_seconds");
  const double wall = number_field(run, "wall_seconds");
  if (drained > 0 && wall > 0) chart.program_end = wall;
  return chart;
}

std::string read_chart(const Json& run, const Series& series) {
  Chart chart = chart_of(run, series, "reads", "Reads");
  chart.note = "by where the bytes came from.";
  chart.unit = ChartUnit::kBytesPerSecond;
  chart.is_stacked = true;
  const std::vector<std::string> tiers = tier_names(run);
  for (size_t tier = 0; tier < tiers.size(); ++tier) {
    if (series.has("hit_bytes." + tiers[tier]))
      chart.lines.push_back(
          {"from " + tiers[tier], tier_colour(tier), series.rate("hit_bytes." + tiers[tier])});
  }
  chart.lines.push_back({"from the store", kStoreColour, series.rate("miss_bytes")});
  return chart_figure(chart);
}

std::string write_chart(const Json& run, const Series& series) {
  Chart chart = chart_of(run, series, "writes", "Writes");
  chart.note = "into the tiers, or straight to the store.";
  chart.unit = ChartUnit::kBytesPerSecond;
  chart.is_stacked = true;
  std::vector<double> buffered = series.of("write_bytes");
  const std::vector<double> through = series.of("write_through_bytes");
  for (size_t at = 0; at < buffered.size(); ++at)
    buffered[at] = std::max(0.0, buffered[at] - through[at]);
  chart.lines.push_back({"into the tiers", 0, rates(buffered, chart.seconds)});
  chart.lines.push_back(
      {"straight to the store", kThroughColour, series.rate("write_through_bytes")});
  return chart_figure(chart);
}

std::string drain_chart(const Json& run, const Series& series) {
  Chart chart = chart_of(run, series, "flushes", "Stored in the background");
  chart.note = "what the whole node wrote back to the store.";
  chart.unit = ChartUnit::kBytesPerSecond;
  chart.is_stacked = true;
  chart.lines.push_back({"flushed", kStoreColour, series.rate("flushed_bytes")});
  return chart_figure(chart);
}

std::string level_chart(const Json& run, const Series& series) {
  Chart chart = chart_of(run, series, "levels", "In the tiers");
  chart.note = "room in use, and of it dirty: not stored yet.";
  chart.unit = ChartUnit::kBytes;
  const std::vector<std::string> tiers = tier_names(run);
  for (size_t tier = 0; tier < tiers.size(); ++tier) {
    if (series.has("used_bytes." + tiers[tier]))
      chart.lines.push_back(
          {"used in " + tiers[tier], tier_colour(tier), series.of("used_bytes." + tiers[tier])});
  }
  chart.lines.push_back({"dirty", kStoreColour, series.of("dirty_bytes")});
  return chart_figure(chart);
}

// A share of what was read in the interval; between reads it stays as it was.
std::string hit_chart(const Json& run, const Series& series) {
  Chart chart = chart_of(run, series, "hits", "Hit ratio");
  chart.note = "the part of the bytes read that some tier had.";
  chart.unit = ChartUnit::kPercent;
  const std::vector<double> read = series.of("read_bytes");
  const std::vector<double> missed = series.of("miss_bytes");
  std::vector<double> ratio(read.size(), 0);
  for (size_t at = 1; at < read.size(); ++at) {
    const double bytes = read[at] - read[at - 1];
    ratio[at] = bytes <= 0 ? ratio[at - 1]
                           : 100 * std::clamp(1 - (missed[at] - missed[at - 1]) / bytes, 0.0, 1.0);
  }
  // Before the first read there is no ratio; the line begins with that of the first.
  const auto first = std::find_if(read.begin(), read.end(), [](double sum) { return sum > 0; });
  const auto begin = ratio.begin() + (first - read.begin());
  if (begin != ratio.end()) std::fill(ratio.begin(), begin, *begin);
  chart.lines.push_back({"hit ratio", 2, std::move(ratio)});
  return chart_figure(chart);
}

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

// Names behind "fetched_bytes." that have a series.
std::vector<std::string> predictors_of(const Json& run) {
  constexpr std::string_view kPrefix = "fetched_bytes.";
  std::vector<std::string> names;
  for (const auto& [name, values] : member(member(run, "timeline"), "series").items()) {
    if (name.rfind(kPrefix, 0) == 0) names.push_back(name.substr(kPrefix.size()));
  }
  return names;
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
                 read_chart(run, series) + hit_chart(run, series) + write_chart(run, series) +
                     drain_chart(run, series) + level_chart(run, series) +
                     totals_table(run, series));
}

std::string fetch_section(const Json& run) {
  const Series series(run);
  Chart chart = chart_of(run, series, "ahead", "Fetched ahead");
  chart.note = "by predictor, for all programs of the node.";
  chart.unit = ChartUnit::kBytesPerSecond;
  chart.is_stacked = true;
  std::string rows;
  for (const std::string& name : predictors_of(run)) {
    const double fetched = series.last("fetched_bytes." + name);
    const double used = series.last("used_ahead_bytes." + name);
    const double vain = series.last("evicted_unused_bytes." + name);
    const int colour = static_cast<int>(chart.lines.size()) % Chart::kColours;
    chart.lines.push_back({name, colour, series.rate("fetched_bytes." + name)});
    rows += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}{}</td><td>{}</td></tr>",
        escaped(name), size_cell(static_cast<uint64_t>(fetched)),
        size_cell(static_cast<uint64_t>(used)), bar(used, fetched, colour), percent(used, fetched),
        size_cell(static_cast<uint64_t>(vain)));
  }
  if (rows.empty()) return "";
  return section(
      "fetched", "What was fetched ahead",
      chart_figure(chart) +
          "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Predictors\">"
          "<table id=\"predictors\"><thead><tr><th scope=\"col\">predictor</th><th "
          "scope=\"col\">fetched</th><th scope=\"col\">used</th><th scope=\"col\">share "
          "used</th><th scope=\"col\">evicted unused</th></tr></thead><tbody>" +
          rows + "</tbody></table></div>");
}

std::string eviction_section(const Json& run) {
  const Series series(run);
  Chart chart = chart_of(run, series, "moves", "Blocks that moved");
  chart.note = "64 KiB each, of all programs of the node.";
  chart.unit = ChartUnit::kPerSecond;
  chart.lines = {{"evicted", 3, series.rate("evicted_blocks")},
                 {"demoted", 1, series.rate("demoted_blocks")},
                 {"promoted", 2, series.rate("promoted_blocks")}};
  const std::string body = chart_figure(chart) + leader_table(member(run, "timeline"));
  return body.empty() ? "" : section("evictions", "Eviction", body);
}

}  // namespace cairn::cli
