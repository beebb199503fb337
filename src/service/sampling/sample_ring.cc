// SPDX-License-Identifier: Apache-2.0
#include "service/sampling/sample_ring.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::node {

SampleRing::SampleRing(std::size_t columns, std::int64_t interval_ns, std::size_t rows_max)
    : columns_(columns), rows_max_(rows_max), interval_ns_(interval_ns) {
  CAIRN_CHECK(columns_ > 0);
  CAIRN_CHECK(interval_ns_ > 0);
  CAIRN_CHECK(rows_max_ >= 2);
}

std::int64_t SampleRing::next_ns() const {
  return times_.empty() ? 0 : times_.back() + interval_ns_;
}

bool SampleRing::is_due(std::int64_t now_ns) const { return now_ns >= next_ns(); }

void SampleRing::add(std::int64_t at_ns, std::span<const std::uint64_t> row) {
  CAIRN_CHECK(row.size() == columns_);
  CAIRN_CHECK(times_.empty() || at_ns > times_.back());
  if (times_.size() == rows_max_) halve();
  times_.push_back(at_ns);
  values_.insert(values_.end(), row.begin(), row.end());
  CAIRN_CHECK(values_.size() == times_.size() * columns_);
}

std::uint64_t SampleRing::value(std::size_t row, std::size_t column) const {
  CAIRN_CHECK(row < times_.size());
  CAIRN_CHECK(column < columns_);
  return values_[row * columns_ + column];
}

// The first row stays: the sums of all others are compared with it.
void SampleRing::halve() {
  std::size_t kept = 0;
  for (std::size_t row = 0; row < times_.size(); row += 2, ++kept) {
    times_[kept] = times_[row];
    const auto from = values_.begin() + static_cast<std::ptrdiff_t>(row * columns_);
    std::copy_n(from, columns_, values_.begin() + static_cast<std::ptrdiff_t>(kept * columns_));
  }
  times_.resize(kept);
  values_.resize(kept * columns_);
  interval_ns_ *= 2;
  CAIRN_CHECK(times_.size() < rows_max_);
}

}  // namespace cairn::node
