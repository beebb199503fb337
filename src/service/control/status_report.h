// SPDX-License-Identifier: Apache-2.0
// What `cairn status` and the report after a run say, as JSON. Field names are stable: they are
// documented for users.
//
// Thread safety: all functions from any thread.
#pragma once

#include <mutex>
#include <nlohmann/json.hpp>

#include "service/attachment/node_context.h"

namespace cairn::node {

using Json = nlohmann::json;

class StatusReport {
 public:
  explicit StatusReport(const NodeContext& context) : context_(context) {}

  Json status();

 private:
  struct Sample {
    std::int64_t at_ns = 0;
    std::uint64_t read_bytes = 0;
    std::uint64_t write_bytes = 0;
    std::uint64_t flushed_bytes = 0;
  };
  Sample sample() const;
  // The sample to compare with: the last one if it is recent, else one taken a moment ago.
  Sample baseline();
  Json tiers(const DirtyView& dirty) const;

  const NodeContext& context_;
  std::mutex mutex_;
  Sample last_;
};

// The files of a drain or status that are not stored.
Json unstored_json(const std::vector<UnstoredFile>& files);
Json foreign_json(const std::vector<ForeignProgram>& programs);
Json run_report(const NodeContext& context, const Run& run, double drain_seconds);

}  // namespace cairn::node
