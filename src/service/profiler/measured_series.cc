// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/measured_series.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace cairn::profiler {
namespace {

// What a pause is: much longer than the usual distance of two completions, and longer than what a
// scheduler or a journal's commit takes.
constexpr int64_t kPauseNsMin = 5'000'000;
constexpr int64_t kPauseMedians = 8;
// Pauses that cover less of the series than this are accidents, not the way that the device works.
constexpr double kPausedShareMin = 0.4;
constexpr size_t kCompletionsMin = 4;

double seconds_between(int64_t begin_ns, int64_t end_ns) {
  return static_cast<double>(std::max<int64_t>(end_ns - begin_ns, 1)) * 1e-9;
}

// The first completions after a pause, as indices.
std::vector<size_t> resumptions(std::span<const int64_t> completed_ns) {
  CAIRN_CHECK(completed_ns.size() > 1);
  std::vector<int64_t> gaps;
  for (size_t index = 1; index < completed_ns.size(); ++index) {
    gaps.push_back(completed_ns[index] - completed_ns[index - 1]);
  }
  std::vector<int64_t> ordered = gaps;
  const auto middle = ordered.begin() + static_cast<ptrdiff_t>(ordered.size() / 2);
  std::nth_element(ordered.begin(), middle, ordered.end());
  const int64_t pause_ns = std::max(kPauseNsMin, kPauseMedians * *middle);
  std::vector<size_t> found;
  for (size_t index = 0; index < gaps.size(); ++index) {
    if (gaps[index] >= pause_ns) found.push_back(index + 1);
  }
  return found;
}

std::span<const int64_t> without_start(std::span<const int64_t> completed_ns, int64_t skip_ns) {
  const auto first = std::lower_bound(completed_ns.begin(), completed_ns.end(), skip_ns);
  const auto left = static_cast<size_t>(completed_ns.end() - first);
  return left < kCompletionsMin ? completed_ns : completed_ns.last(left);
}

}  // namespace

Spread Spread::scaled(double factor) const {
  return {value * factor, minimum * factor, median * factor, maximum * factor};
}

Spread Spread::inverted(double factor) const {
  const auto over = [factor](double rate) { return rate > 0 ? factor / rate : 0; };
  return {over(value), over(maximum), over(median), over(minimum)};
}

Spread spread_of(std::span<const double> values) {
  if (values.empty()) return {};
  std::vector<double> ordered(values.begin(), values.end());
  std::sort(ordered.begin(), ordered.end());
  const size_t middle = ordered.size() / 2;
  const double median =
      ordered.size() % 2 == 1 ? ordered[middle] : (ordered[middle - 1] + ordered[middle]) / 2;
  return {median, ordered.front(), median, ordered.back()};
}

SeriesRate rate_of_series(std::span<const int64_t> completed_ns, int64_t skip_ns) {
  SeriesRate result;
  if (completed_ns.empty()) return result;
  if (completed_ns.size() < kCompletionsMin) {
    // Too few to tell the start of the series from its course.
    result.requests = completed_ns.size();
    result.seconds = seconds_between(0, completed_ns.back());
    const double rate = static_cast<double>(result.requests) / result.seconds;
    result.per_second = {rate, rate, rate, rate};
    return result;
  }
  const std::span<const int64_t> series = without_start(completed_ns, skip_ns);
  std::vector<size_t> cuts = resumptions(series);
  const double whole = seconds_between(series.front(), series.back());
  result.paused = cuts.size() >= 2 && seconds_between(series[cuts.front()], series[cuts.back()]) >=
                                          kPausedShareMin * whole;
  if (!result.paused) {
    cuts.resize(series.size());
    for (size_t index = 0; index < cuts.size(); ++index) cuts[index] = index;
  }
  const auto rate_between = [&series](size_t begin, size_t end) {
    return static_cast<double>(end - begin) / seconds_between(series[begin], series[end]);
  };
  CAIRN_CHECK(cuts.size() >= 2 && cuts.back() < series.size());
  const size_t pieces = std::min<size_t>(kSeriesPieces, cuts.size() - 1);
  std::vector<double> rates;
  for (size_t piece = 0; piece < pieces; ++piece) {
    rates.push_back(rate_between(cuts[piece * (cuts.size() - 1) / pieces],
                                 cuts[(piece + 1) * (cuts.size() - 1) / pieces]));
  }
  result.per_second = spread_of(rates);
  result.per_second.value = rate_between(cuts.front(), cuts.back());
  result.seconds = seconds_between(series[cuts.front()], series[cuts.back()]);
  result.requests = cuts.back() - cuts.front();
  return result;
}

}  // namespace cairn::profiler
