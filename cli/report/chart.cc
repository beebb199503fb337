// SPDX-License-Identifier: Apache-2.0
#include "cli/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/check.h"
#include "base/size_text.h"
#include "cli/report/html_text.h"

namespace cairn::cli {
namespace {

constexpr double kWidth = 1000;
constexpr double kHeight = 200;
constexpr size_t kTableRowsMax = 24;

bool is_rate(ChartUnit unit) {
  return unit == ChartUnit::kBytesPerSecond || unit == ChartUnit::kPerSecond;
}

// The top of the axis: the next of 1, 2, 4 (5 in decimal) times a power, so that halves are round.
double axis_top(ChartUnit unit, double most) {
  if (unit == ChartUnit::kPercent) return 100;
  const bool binary = unit != ChartUnit::kPerSecond;
  double top = 1;
  if (binary) {
    while (top < most) top *= 2;
    return std::max(top, 1024.0);
  }
  while (top * 10 < most) top *= 10;
  for (const double step : {1.0, 2.0, 5.0, 10.0}) {
    if (top * step >= most) return top * step;
  }
  return top * 10;
}

struct Scale {
  double seconds;
  double top;
  double x(double at) const { return seconds <= 0 ? 0 : kWidth * at / seconds; }
  double y(double value) const { return kHeight - kHeight * std::min(value / top, 1.0); }
};

// A step for each interval of a rate, a line between levels.
std::string path_of(const Chart& chart, const Scale& scale, const std::vector<double>& values) {
  const bool has_steps = is_rate(chart.unit) || chart.unit == ChartUnit::kPercent;
  std::string path;
  for (size_t at = 0; at < values.size(); ++at) {
    const double x = scale.x(chart.seconds[at]);
    const double y = scale.y(values[at]);
    if (at == 0) {
      path =
          fmt::format("{:.1f},{:.1f}", x, has_steps && values.size() > 1 ? scale.y(values[1]) : y);
    } else if (has_steps) {
      path += fmt::format(" V{:.1f} H{:.1f}", y, x);
    } else {
      path += fmt::format(" L{:.1f},{:.1f}", x, y);
    }
  }
  return path;
}

std::string area(const Chart& chart, const Scale& scale, const std::vector<double>& upper) {
  return fmt::format("M{:.1f},{:.0f} L{} V{:.0f} Z", scale.x(chart.seconds.front()), kHeight,
                     path_of(chart, scale, upper), kHeight);
}

std::string plot_svg(const Chart& chart, const Scale& scale) {
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-labelledby=\"{2}-t\" xmlns=\"http://www.w3.org/2000/svg\"><title id=\"{2}-t\">{3}: the "
      "table below has its numbers</title>",
      kWidth, kHeight, chart.id, escaped(chart.title));
  for (const double part : {0.25, 0.5, 0.75})
    svg += fmt::format("<path class=\"grid\" d=\"M0,{0:.0f} H{1:.0f}\"/>", kHeight * part, kWidth);
  std::vector<std::vector<double>> tops;
  for (const ChartLine& line : chart.lines) {
    std::vector<double> values = line.values;
    if (chart.is_stacked && !tops.empty()) {
      for (size_t at = 0; at < values.size(); ++at) values[at] += tops.back()[at];
    }
    tops.push_back(std::move(values));
  }
  // The highest area first: those below cover it.
  for (size_t at = chart.lines.size(); at-- > 0;) {
    const ChartLine& line = chart.lines[at];
    const std::string shape =
        chart.is_stacked ? area(chart, scale, tops[at]) : "M" + path_of(chart, scale, tops[at]);
    svg +=
        fmt::format("<path class=\"{}{}\" d=\"{}\"><title>{}</title></path>",
                    chart.is_stacked ? "area c" : "line c", line.colour, shape, escaped(line.name));
  }
  if (chart.program_end >= 0 && chart.program_end < scale.seconds) {
    svg += fmt::format(
        "<path class=\"mark\" d=\"M{0:.1f},0 V{1:.0f}\"><title>the program's end"
        "</title></path>",
        scale.x(chart.program_end), kHeight);
  }
  return svg + "</svg>";
}

// "15 min" for "15 min 00 s": an axis has no room for what is nothing.
std::string short_duration(double seconds) {
  std::string text = format_duration(seconds);
  for (const std::string_view nothing : {" 00 s", " 00 min"}) {
    if (text.ends_with(nothing)) text.resize(text.size() - nothing.size());
  }
  return text;
}

std::string axes(const Chart& chart, const Scale& scale) {
  std::string html = "<div class=\"y\" aria-hidden=\"true\">";
  for (const double part : {1.0, 0.75, 0.5, 0.25, 0.0})
    html += fmt::format("<span>{}</span>",
                        part == 0 ? std::string("0") : unit_text(chart.unit, scale.top * part));
  html += "</div><div class=\"x\" aria-hidden=\"true\">";
  for (const double part : {0.0, 0.25, 0.5, 0.75, 1.0})
    html += fmt::format("<span>{}</span>",
                        part == 0 ? std::string("0") : short_duration(scale.seconds * part));
  return html + "</div>";
}

std::string legend(const Chart& chart) {
  std::string html = "<ul class=\"legend\" aria-label=\"Colours\">";
  for (const ChartLine& line : chart.lines)
    html += fmt::format("<li><i class=\"c{}\"></i>{}</li>", line.colour, escaped(line.name));
  return html + "</ul>";
}

// A rate's mean since the row before; else the value at that time.
double table_value(const Chart& chart, const ChartLine& line, size_t from, size_t to) {
  CAIRN_CHECK(to < line.values.size());
  if (!is_rate(chart.unit)) return line.values[to];
  double sum = 0;
  for (size_t at = from + 1; at <= to; ++at)
    sum += line.values[at] * (chart.seconds[at] - chart.seconds[at - 1]);
  const double seconds = chart.seconds[to] - chart.seconds[from];
  return seconds <= 0 ? 0 : sum / seconds;
}

std::string table_of(const Chart& chart) {
  std::string html = fmt::format(
      "<details><summary>Numbers of \"{0}\"</summary><div class=\"scroll\" tabindex=\"0\" "
      "role=\"region\" aria-label=\"Numbers of {0}\"><table id=\"{1}-numbers\"><thead><tr>"
      "<th scope=\"col\">until</th>",
      escaped(chart.title), chart.id);
  for (const ChartLine& line : chart.lines)
    html += fmt::format("<th scope=\"col\">{}</th>", escaped(line.name));
  html += "</tr></thead><tbody>";
  const size_t last = chart.seconds.size() - 1;
  const size_t rows = std::min(last, kTableRowsMax);
  size_t from = 0;
  for (size_t row = 1; row <= rows; ++row) {
    const size_t to = row * last / rows;
    html += fmt::format("<tr><th scope=\"row\">{}</th>",
                        data_cell(chart.seconds[to], format_duration(chart.seconds[to])));
    for (const ChartLine& line : chart.lines) {
      const double value = table_value(chart, line, from, to);
      html += "<td>" + data_cell(value, unit_text(chart.unit, value)) + "</td>";
    }
    html += "</tr>";
    from = to;
  }
  return html + "</tbody></table></div></details>";
}

// The highest point; 0 where the chart shows nothing.
double most_of(const Chart& chart) {
  if (chart.seconds.size() < 2) return 0;
  double most = 0;
  for (size_t at = 0; at < chart.seconds.size(); ++at) {
    double sum = 0;
    for (const ChartLine& line : chart.lines) {
      CAIRN_CHECK(line.values.size() == chart.seconds.size());
      sum = chart.is_stacked ? sum + line.values[at] : std::max(sum, line.values[at]);
    }
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

bool shows_something(const Chart& chart) { return most_of(chart) > 0; }

std::string unit_text(ChartUnit unit, double value) {
  const double positive = std::max(value, 0.0);
  switch (unit) {
    case ChartUnit::kBytesPerSecond:
      return format_size(static_cast<uint64_t>(std::llround(positive))) + "/s";
    case ChartUnit::kBytes:
      return format_size(static_cast<uint64_t>(std::llround(positive)));
    case ChartUnit::kPercent:
      return fmt::format("{:.0f} %", positive);
    case ChartUnit::kPerSecond:
      return fmt::format("{}/s", positive < 10 ? number_text(std::round(positive * 100) / 100)
                                               : fmt::format("{:.0f}", positive));
  }
  return {};
}

std::vector<double> rates(const std::vector<double>& sums, const std::vector<double>& seconds) {
  CAIRN_CHECK(sums.size() == seconds.size());
  std::vector<double> result(sums.size(), 0);
  for (size_t at = 1; at < sums.size(); ++at) {
    const double took = seconds[at] - seconds[at - 1];
    if (took > 0) result[at] = std::max(0.0, sums[at] - sums[at - 1]) / took;
  }
  return result;
}

std::string chart_figure(const Chart& chart) {
  const double most = most_of(chart);
  if (most <= 0) return "";
  const Scale scale{chart.seconds.back(), axis_top(chart.unit, most)};
  return fmt::format(
      "<figure id=\"{0}\" tabindex=\"0\" aria-labelledby=\"{0}-c\"><figcaption id=\"{0}-c\"><b>{1}"
      "</b> {2}</figcaption>{3}<div class=\"plot\">{4}{5}</div>{6}</figure>\n",
      chart.id, escaped(chart.title), escaped(chart.note), legend(chart), axes(chart, scale),
      plot_svg(chart, scale), table_of(chart));
}

}  // namespace cairn::cli
