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

  // Run 0: of all runs, until the node ends. A hint for the same place takes the older one's.
  // Errors: kInvalid where the hint has numbers that cannot be, or where there are too many.
  Status add(std::uint32_t run, const arrays::ArrayHint& hint);
  // The same, but an older one for the same place stays: options count before rules.
  Status add_of_rule(std::uint32_t run, const arrays::ArrayHint& hint);
  // All of them, or none where one cannot be added.
  Status add_all(std::uint32_t run, const std::vector<arrays::ArrayHint>& hints);
  // A hint of the run that was left out is to be in its complaints: the first kRefusedMax.
  void note_refused(std::uint32_t run, const std::string& complaint);
  bool is_empty() const;
  // All of them, as a service leaves them to its successor; a text is what parse_array_hint()
  // takes.
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

  mutable std::mutex mutex_;
  std::vector<Given> given_;
  std::map<std::uint32_t, Refused> refused_;  // by run
};

}  // namespace cairn::node
