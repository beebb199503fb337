// SPDX-License-Identifier: Apache-2.0
// The datasets that programs read, as JSON: what they are, what of them is cached, and how their
// reads went. For `cairn arrays`, `cairn explain --dataset` and the report after a run.
//
// Thread safety: any thread; a snapshot. Ownership: borrows everything.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/node_config.h"
#include "memory/tiers/node_memory.h"
#include "policy/arrays/file_array.h"
#include "service/control/json.h"
#include "service/gathering/array_book.h"
#include "service/gathering/array_hints.h"
#include "service/gathering/chunk_gatherer.h"

namespace cairn::node {

// All of them outlive the report.
struct ArraySources {
  const NodeConfig& config;
  const NodeMemory& memory;
  const ArrayBook& book;
  const ArrayHints& hints;
  const ChunkGatherer& gatherer;
};

class ArrayReport {
 public:
  // Chunks that are looked for in the tiers for one answer. Where the datasets have more, each has
  // the same number of them, or all that it has.
  static constexpr std::uint64_t kChunksMax = std::uint64_t{1} << 16;
  // Datasets in the report of a run; of more, those with most reads.
  static constexpr std::size_t kOfRunMax = 32;

  explicit ArrayReport(const ArraySources& sources) : from_(sources) {}

  struct Question {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::string dataset;        // of that name, in bytes; empty: all
    bool names_chunks = false;  // also which chunks are cached, in which tier
  };

  // Chunks of all datasets that were unpacked before they were read.
  std::uint64_t unpacked_ahead() const { return from_.gatherer.unpacker().unpacked_in_all(); }
  // A list.
  Json of_file(const Question& question) const;
  // What the run has read, without what is cached: {"datasets": [...], "more": N,
  // "may_be_served": N, "not_served": {reason: N}, "hints": [what is wrong with the user's]}; the
  // numbers but the first count all datasets.
  Json of_run(std::uint32_t run) const;

 private:
  // One for the chunks of a dataset.
  struct Search {
    ObjectIndex file;
    const arrays::DatasetNews& dataset;
    bool names_chunks;
    std::unordered_set<ObjectIndex> found{};  // a region may be a chunk of two grids
  };

  // The present one first.
  std::vector<arrays::ChunkGrid> grids_of(ObjectIndex file,
                                          const arrays::DatasetNews& dataset) const;
  // The chunks of the first grid, and of each later one that has any in the tiers. Looks for the
  // first `most` chunks of each. Requires: a grid.
  Json cached_of(Search search, const std::vector<arrays::ChunkGrid>& grids,
                 std::uint64_t most) const;
  // Looks for the first `looked_at` in the tiers.
  Json chunks_of(Search* search, const arrays::ChunkGrid& grid, std::uint64_t looked_at) const;
  ObjectIndex chunk(ObjectIndex file, const arrays::DatasetNews& dataset,
                    const arrays::ChunkGrid& grid, std::uint64_t number) const;

  const ArraySources from_;
};

}  // namespace cairn::node
