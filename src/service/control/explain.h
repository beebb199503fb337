// SPDX-License-Identifier: Apache-2.0
// Where the bytes of one file are: what `cairn explain PATH` prints.
//
// Thread safety: any thread; a snapshot. Ownership: borrows everything.
#pragma once

#include <cstdint>
#include <string>

#include "base/node_config.h"
#include "memory/tiers/node_memory.h"
#include "service/capacity/placement_engine.h"
#include "service/control/json.h"
#include "service/treatment/buffered_directories.h"
#include "service/treatment/rule_registry.h"

namespace cairn::node {

// The object of a file, kNone when nothing of it is known here.
ObjectIndex find_file(const NodeMemory& memory, std::uint64_t device, std::uint64_t inode);

// The places of a file's blocks with their reasons, and the rules for the file.
struct ExplainRequest {
  std::uint64_t device = 0;  // as stat(2) names the file
  std::uint64_t inode = 0;
  std::string path;  // canonical; empty: without the rules
  std::uint64_t size = 0;
};

class Explanation {
 public:
  Explanation(const NodeConfig& config, const NodeMemory& memory, const PlacementEngine& placement,
              const RuleRegistry& rules, const BufferedDirectories& directories)
      : config_(config),
        memory_(memory),
        placement_(placement),
        rules_(rules),
        directories_(directories) {}

  Json of(const ExplainRequest& request) const;

 private:
  struct Range;
  struct Ranges;
  Range range_of(BucketIndex bucket, BlockNumber number, std::uint64_t size) const;
  Ranges ranges_of(ObjectIndex index, std::uint64_t size) const;
  Json handling_json(const ObjectHandling& handling) const;
  Json rules_json(const ExplainRequest& request) const;

  const NodeConfig& config_;
  const NodeMemory& memory_;
  const PlacementEngine& placement_;
  const RuleRegistry& rules_;
  const BufferedDirectories& directories_;
};

}  // namespace cairn::node
