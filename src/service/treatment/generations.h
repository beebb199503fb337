// SPDX-License-Identifier: Apache-2.0
// Lifetimes of scratch files: of the generations of `step-{n}.h5` that a program writes, a rule
// keeps the latest few, and the room of the others is free for the next.
//
// A generation ends when a later one gets its first byte.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file_rule.h"

namespace cairn::node {

// The number that stands at `{n}` of a rule's pattern, and what is around it.
struct Generation {
  std::string before;  // of the path
  std::uint64_t number = 0;
  std::string after;
  std::string path_of(std::uint64_t other) const { return before + std::to_string(other) + after; }
};

// Nothing when the pattern has no `{n}` or the path is not of it. Patterns without a slash speak of
// the last component, as everywhere.
std::optional<Generation> generation_of(const FileRule& rule, const std::string& path);

// The paths of the generations that end now that `path` is written, latest first; only those with
// exists(path), down to the first that does not exist.
template <typename Exists>
std::vector<std::string> ended_generations(const FileRule& rule, const std::string& path,
                                           Exists&& exists) {
  std::vector<std::string> ended;
  const auto generation = generation_of(rule, path);
  if (!generation || !rule.keep) return ended;
  for (std::uint64_t age = *rule.keep; age != 0 && age <= generation->number; ++age) {
    const std::string old = generation->path_of(generation->number - age);
    if (!exists(old)) break;
    ended.push_back(old);
  }
  return ended;
}

}  // namespace cairn::node
