// SPDX-License-Identifier: Apache-2.0
// The samples of a run: rows of numbers at growing times, never more than a limit. When there is
// no room for another one, every second row goes and the interval doubles, so a week needs as
// little as an hour, and each part of the run keeps an equal share of the rows.
//
// Thread safety: none of its own. Ownership: owns its rows. Units: nanoseconds of the monotonic
// clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cairn::node {

class SampleRing {
 public:
  static constexpr std::size_t kRowsMax = 512;

  // Requires: at least one column, a positive interval, room for two rows.
  SampleRing(std::size_t columns, std::int64_t interval_ns, std::size_t rows_max = kRowsMax);

  // Whether a row is due; the first is at once.
  bool is_due(std::int64_t now_ns) const;
  std::int64_t next_ns() const;
  // Requires: as many numbers as there are columns, and a time behind that of the last row.
  void add(std::int64_t at_ns, std::span<const std::uint64_t> row);

  std::int64_t interval_ns() const { return interval_ns_; }
  std::size_t size() const { return times_.size(); }
  std::int64_t time(std::size_t row) const { return times_[row]; }
  std::uint64_t value(std::size_t row, std::size_t column) const;

 private:
  void halve();

  const std::size_t columns_;
  const std::size_t rows_max_;
  std::int64_t interval_ns_;
  std::vector<std::int64_t> times_;
  std::vector<std::uint64_t> values_;  // row by row
};

}  // namespace cairn::node
