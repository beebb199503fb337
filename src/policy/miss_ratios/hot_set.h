// SPDX-License-Identifier: Apache-2.0
// The hot set of a stream: the fewest pages that take a share of its references, such as 90 %.
//
// Thread safety: a pure function.
#pragma once

#include <cstdint>
#include <vector>

namespace cairn {

inline constexpr double kHotShare = 0.9;

// `uses` has the references to each page of a sample, `weight` the number of pages that each of
// them stands for, `references` the length of the stream. The pages that are not hot are added up,
// from the least used on, because a sample has many of these and few or none of the hottest.
// Requires: 0 < share <= 1. Returns: pages of the stream, not of the sample.
double hot_set_pages(std::vector<std::uint32_t> uses, double weight, double references,
                     double share);

}  // namespace cairn
