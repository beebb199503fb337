// SPDX-License-Identifier: Apache-2.0
//
// From the times at which requests were completed to a rate with its spread.
//
// A device that is limited by a token bucket (blk-throttle, cloud volumes) does not serve evenly:
// it grants what a slice of, say, 100 ms is worth at once and then pauses, and the first slice
// comes free of charge. The bytes between two arbitrary instants then differ from the rate by up to
// two slices' worth. Between the first completions after two pauses, however, lie whole slices: the
// rate taken from there to there is exact however short the series is, and the credit of the first
// slice lies outside. A device that serves evenly has no pauses and is taken from end to end.
//
// Thread safety: pure functions. Units: seconds, requests per second.
#pragma once

#include <cstdint>
#include <span>

namespace cairn::profiler {

// A measured quantity: over the whole series, and over its pieces.
struct Spread {
  double value = 0;
  double minimum = 0;
  double median = 0;
  double maximum = 0;

  // Half the distance of the extremes as a part of the value; 0 for an unknown one.
  double relative() const { return value > 0 ? (maximum - minimum) / 2 / value : 0; }
  // Every part multiplied.
  Spread scaled(double factor) const;
  // factor / x of every part: the time per request out of requests per time, for one.
  Spread inverted(double factor) const;
};

struct SeriesRate {
  Spread per_second;      // completed requests
  double seconds = 0;     // the part of the series that it was taken from
  uint64_t requests = 0;  // completed in that part
  bool paused = false;    // it was taken from pause to pause
};

inline constexpr unsigned kSeriesPieces = 8;

// `completed_ns`: ascending, since the series began. Requests that were completed before `skip_ns`
// are left out, unless nearly none would be left. An empty series has the rate 0.
SeriesRate rate_of_series(std::span<const int64_t> completed_ns, int64_t skip_ns);

// For values that were measured one by one: the median is the value.
Spread spread_of(std::span<const double> values);

}  // namespace cairn::profiler
