// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace cairn {
namespace {

// Insertions, deletions, substitutions and exchanges of neighbours.
size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<size_t> before_previous;
  std::vector<size_t> previous(right.size() + 1);
  for (size_t column = 0; column <= right.size(); ++column) previous[column] = column;
  for (size_t line = 1; line <= left.size(); ++line) {
    std::vector<size_t> row(right.size() + 1);
    row[0] = line;
    for (size_t column = 1; column <= right.size(); ++column) {
      const bool same = left[line - 1] == right[column - 1];
      row[column] = std::min(
          {previous[column] + 1, row[column - 1] + 1, previous[column - 1] + (same ? 0 : 1)});
      const bool exchanged = line > 1 && column > 1 && left[line - 1] == right[column - 2] &&
                             left[line - 2] == right[column - 1];
      if (exchanged) row[column] = std::min(row[column], before_previous[column - 2] + 1);
    }
    before_previous = std::move(previous);
    previous = std::move(row);
  }
  return previous.back();
}

}  // namespace

std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace cairn
