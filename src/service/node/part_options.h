// SPDX-License-Identifier: Apache-2.0
// What the parts of the service are made with, out of its configuration.
//
// Thread safety: pure functions.
#pragma once

#include <vector>

#include "base/check.h"
#include "base/node_config.h"
#include "service/profiler/tier_figures.h"
#include "service/write_back/flusher.h"

namespace cairn::node {

inline FlushOptions flush_options(const NodeConfig& config) {
  return FlushOptions{config.flush_delay_ms, config.flush_streams, config.flush_dirty_high_percent,
                      config.flush_retry_ms, config.flush_amount_bytes};
}

// The measured figures of each tier, or those of its class; the RAM tier first.
inline std::vector<profiler::TierFigures> figures_of(const NodeConfig& config) {
  std::vector<profiler::TierFigures> figures;
  figures.push_back(profiler::figures_for("", profiler::TierKind::kMemory));
  for (const FileTierConfig& tier : config.tiers)
    figures.push_back(profiler::figures_for(tier.directory, profiler::TierKind::kDirectory));
  CAIRN_CHECK(figures.size() == config.tiers.size() + 1);
  return figures;
}

}  // namespace cairn::node
