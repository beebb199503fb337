// SPDX-License-Identifier: Apache-2.0
#include "cli/report/run_charts.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cli/node/json_fields.h"
#include "cli/report/series.h"

namespace cairn::cli {
namespace {

using Json = nlohmann::json;

// The tiers have these from the fastest down; the store and what goes past the tiers have others.
constexpr int kTierColours[] = {0, 1, 2, 6};
constexpr int kStoreColour = 3;
constexpr int kThroughColour = 4;

int tier_colour(size_t tier) { return kTierColours[std::min<size_t>(tier, 3)]; }

Chart empty_chart(const Json& run, const Series& series, const char* id, const char* title) {
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

// One line for each tier that the record has the series of.
void add_tiers(const Json& run, const Series& series, const std::string& key,
               const std::string& word, Chart* chart) {
  CAIRN_CHECK(chart != nullptr);
  const bool is_rate = chart->unit == ChartUnit::kBytesPerSecond;
  const std::vector<std::string> tiers = tier_names(run);
  for (size_t tier = 0; tier < tiers.size(); ++tier) {
    const std::string name = key + tiers[tier];
    if (!series.has(name)) continue;
    chart->lines.push_back(
        {word + tiers[tier], tier_colour(tier), is_rate ? series.rate(name) : series.of(name)});
  }
}

Chart read_chart(const Json& run, const Series& series) {
  Chart chart = empty_chart(run, series, "reads", "Reads");
  chart.note = "by where the bytes came from.";
  chart.unit = ChartUnit::kBytesPerSecond;
  chart.is_stacked = true;
  add_tiers(run, series, "hit_bytes.", "from ", &chart);
  chart.lines.push_back({"from the store", kStoreColour, series.rate("miss_bytes")});
  return chart;
}

Chart write_chart(const Json& run, const Series& series) {
  Chart chart = empty_chart(run, series, "writes", "Writes");
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
  return chart;
}

Chart drain_chart(const Json& run, const Series& series) {
  Chart chart = empty_chart(run, series, "flushes", "Stored in the background");
  chart.note = "what the whole node wrote back to the store.";
  chart.unit = ChartUnit::kBytesPerSecond;
  chart.is_stacked = true;
  chart.lines.push_back({"flushed", kStoreColour, series.rate("flushed_bytes")});
  return chart;
}

Chart level_chart(const Json& run, const Series& series) {
  Chart chart = empty_chart(run, series, "levels", "In the tiers");
  chart.note = "room in use, and of it dirty: not stored yet.";
  chart.unit = ChartUnit::kBytes;
  add_tiers(run, series, "used_bytes.", "used in ", &chart);
  chart.lines.push_back({"dirty", kStoreColour, series.of("dirty_bytes")});
  return chart;
}

// A share of what was read in the interval; between reads it stays as it was.
Chart hit_chart(const Json& run, const Series& series) {
  Chart chart = empty_chart(run, series, "hits", "Hit ratio");
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
  return chart;
}

Chart ahead_chart(const Json& run, const Series& series) {
  Chart chart = empty_chart(run, series, "ahead", "Fetched ahead");
  chart.note = "by predictor, for all programs of the node.";
  chart.unit = ChartUnit::kBytesPerSecond;
  chart.is_stacked = true;
  for (const std::string& name : predictors_of(run)) {
    const int colour = static_cast<int>(chart.lines.size()) % Chart::kColours;
    chart.lines.push_back({name, colour, series.rate("fetched_bytes." + name)});
  }
  return chart;
}

Chart move_chart(const Json& run, const Series& series) {
  Chart chart = empty_chart(run, series, "moves", "Blocks that moved");
  chart.note = "64 KiB each, of all programs of the node.";
  chart.unit = ChartUnit::kPerSecond;
  chart.lines = {{"evicted", 3, series.rate("evicted_blocks")},
                 {"demoted", 1, series.rate("demoted_blocks")},
                 {"promoted", 2, series.rate("promoted_blocks")}};
  return chart;
}

const char* unit_name(ChartUnit unit) {
  switch (unit) {
    case ChartUnit::kBytesPerSecond:
      return "bytes/s";
    case ChartUnit::kBytes:
      return "bytes";
    case ChartUnit::kPercent:
      return "percent";
    case ChartUnit::kPerSecond:
      return "1/s";
  }
  CAIRN_CHECK(false);
  return "";
}

Json picture_json(const Chart& chart) {
  Json lines = Json::array();
  for (const ChartLine& line : chart.lines)
    lines.push_back({{"name", line.name}, {"colour", line.colour}, {"values", line.values}});
  return {{"id", chart.id},
          {"title", chart.title + ": " + chart.note},
          {"unit", unit_name(chart.unit)},
          {"stacked", chart.is_stacked},
          {"seconds", chart.seconds},
          {"program_end", chart.program_end},
          {"lines", std::move(lines)}};
}

void add_picture(const Json& picture, PictureLines* lines) {
  CAIRN_CHECK(lines != nullptr);
  lines->ids.push_back(text_field(picture, "id"));
  lines->text += picture.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Chart chart_of(const Json& run, RunChart which) {
  const Series series(run);
  switch (which) {
    case RunChart::kReads:
      return read_chart(run, series);
    case RunChart::kHits:
      return hit_chart(run, series);
    case RunChart::kWrites:
      return write_chart(run, series);
    case RunChart::kFlushes:
      return drain_chart(run, series);
    case RunChart::kLevels:
      return level_chart(run, series);
    case RunChart::kAhead:
      return ahead_chart(run, series);
    case RunChart::kMoves:
      return move_chart(run, series);
  }
  CAIRN_CHECK(false);
  return {};
}

PictureLines picture_lines_of(const Json& run) {
  PictureLines lines;
  for (const RunChart which :
       {RunChart::kReads, RunChart::kHits, RunChart::kWrites, RunChart::kFlushes, RunChart::kLevels,
        RunChart::kAhead, RunChart::kMoves}) {
    const Chart chart = chart_of(run, which);
    if (shows_something(chart)) add_picture(picture_json(chart), &lines);
  }
  const Json& heat = member(member(run, "timeline"), "heat");
  if (!member(heat, "cells").empty())
    add_picture({{"id", "heat"},
                 {"title", "Heat of " + text_field(heat, "path")},
                 {"file_bytes", unsigned_field(heat, "file_bytes")},
                 {"cells", member(heat, "cells")}},
                &lines);
  return lines;
}

}  // namespace cairn::cli
