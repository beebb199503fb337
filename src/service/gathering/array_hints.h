// SPDX-License-Identifier: Apache-2.0
// The hints of users about datasets, and what became of them: a hint that fits no array that was
// read is worth a line, because the user meant one.
//
// Thread safety: all functions from any thread. Ownership: values.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "policy/arrays/array_hint.h"
#include "policy/arrays/dataset_news.h"

namespace cairn::node {

class ArrayHints {
 public:
  // Each run may have so many, and the node as many of its own.
  static constexpr std::size_t kHintsMax = 256;
  static constexpr std::size_t kRefusedMax = 16;

  // Run 0: of all runs, until the node ends. Where several mean the same dataset, the later one
  // counts; one that names the same file in the same words takes the older one's place.
  // Errors: kInvalid where the hint has numbers that cannot be, or where there are too many.
  Status add(std::uint32_t run, const arrays::ArrayHint& hint);
  // The same, but all older ones count before it: options before rules, and rules in their order.
  Status add_of_rule(std::uint32_t run, const arrays::ArrayHint& hint);
  // All of them, or none where one cannot be added.
  Status add_all(std::uint32_t run, const std::vector<arrays::ArrayHint>& hints);
  // A hint of the run that was left out is to be in its complaints: the first kRefusedMax.
  void note_refused(std::uint32_t run, const std::string& complaint);
  bool is_empty() const;
  // All of them, as a service leaves them to its successor, which add()s them in this order; a text
  // is what parse_array_hint() has taken.
  struct Said {
    std::uint32_t run = 0;
    std::string text;
  };
  std::vector<Said> snapshot() const;
  void end_run(std::uint32_t run);

  // The grid that a hint gives to a dataset that a program of the run reads, if one does; a hint of
  // the run goes before one of the node. `path`: of the file.
  std::optional<arrays::ChunkGrid> grid_for(std::uint32_t run, const std::string& path,
                                            const arrays::DatasetNews& dataset);

  // The faults of the run's hints, as far as its reads have shown any, one line for each.
  std::vector<std::string> complaints_of(std::uint32_t run) const;

 private:
  struct Given {
    std::uint32_t run = 0;
    arrays::ArrayHint hint;
    bool has_met_file = false;
    bool has_met_dataset = false;
    std::string fault;
  };

  struct Refused {
    std::vector<std::string> complaints;
    std::size_t more = 0;
  };

  // Both hold the mutex.
  std::vector<Given>::iterator place_of(std::uint32_t run, const arrays::ArrayHint& hint);
  Status add_locked(std::uint32_t run, const arrays::ArrayHint& hint);
  Status check_room(std::uint32_t run) const;

  mutable std::mutex mutex_;
  std::vector<Given> given_;  // of those of one run that mean the same dataset the last one counts
  std::map<std::uint32_t, Refused> refused_;  // by run
};

}  // namespace cairn::node
