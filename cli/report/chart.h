// SPDX-License-Identifier: Apache-2.0
//
// A chart over time as a figure of the page: the plot as SVG, which stretches to any width, its
// labels as HTML, so that they keep their size, and the table of the numbers behind it.
//
// Thread safety: pure functions. Ownership: results are values. Units: seconds since the run began.
#pragma once

#include <string>
#include <vector>

namespace cairn::cli {

enum class ChartUnit { kBytesPerSecond, kBytes, kPercent, kPerSecond };

struct ChartLine {
  std::string name;
  int colour = 0;  // of kColours
  std::vector<double> values;
};

struct Chart {
  static constexpr int kColours = 8;

  std::string id;
  std::string title;
  std::string note;  // one sentence under the title
  ChartUnit unit = ChartUnit::kBytes;
  // Each line lies on the one before it, as an area.
  bool is_stacked = false;
  // Where the samples are. A line has a value for each; that of a rate holds since the sample
  // before.
  std::vector<double> seconds;
  std::vector<ChartLine> lines;
  double program_end = -1;  // marked where it is not negative
};

// Not with fewer than two samples, and where no line is ever above 0.
bool shows_something(const Chart& chart);
// Empty where it shows nothing.
std::string chart_figure(const Chart& chart);

// The number as the chart's labels and its table have it.
std::string unit_text(ChartUnit unit, double value);

// What sums grew by in each second: `sums` and `seconds` are of equal length. The first is 0.
std::vector<double> rates(const std::vector<double>& sums, const std::vector<double>& seconds);

}  // namespace cairn::cli
