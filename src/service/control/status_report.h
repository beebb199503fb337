// SPDX-License-Identifier: Apache-2.0
// Makes the texts of `cairn status` and of the report after a run, as JSON. Field names are stable:
// they are documented for users.
//
// Thread safety: all functions from any thread. Ownership: borrows everything.
#pragma once

#include <mutex>

#include "base/node_config.h"
#include "memory/tiers/node_memory.h"
#include "service/attachment/client_table.h"
#include "service/attachment/reaper.h"
#include "service/attachment/run_table.h"
#include "service/capacity/account_registry.h"
#include "service/control/array_report.h"
#include "service/control/json.h"
#include "service/control/learning_report.h"
#include "service/durability/node_durability.h"
#include "service/keeping/kept_life.h"
#include "service/write_back/dirty_view.h"
#include "service/write_back/flusher.h"
#include "service/write_back/store_files.h"
#include "service/write_back/unserved_files.h"

namespace cairn::node {

// The sources of the report; all of them outlive it.
struct StatusSources {
  const NodeConfig& config;
  const NodeMemory& memory;
  const ClientTable& clients;
  const RunTable& runs;
  const AccountRegistry& accounts;
  const StoreFiles& files;
  const Flusher& flusher;
  const UnservedFiles& unserved;
  const Reaper& reaper;
  const LearningReport& learning;
  std::int64_t started_ns;
  const NodeDurability& durability;
  const KeptLife* life = nullptr;       // null: nobody starts the service anew
  const ArrayReport* arrays = nullptr;  // null: nobody tells of arrays
};

class StatusReport {
 public:
  explicit StatusReport(const StatusSources& sources) : from_(sources) {}

  Json status();
  // The work of a run, after a drain that took so long.
  Json run(const Run& run, double drain_seconds) const;

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
  Json runs(std::int64_t now_ns) const;
  static Json backing(const DirtyView& dirty, const Sample& before, const Sample& now);
  std::uint32_t leased_slabs() const;

  const StatusSources from_;
  std::mutex mutex_;
  Sample last_;
};

}  // namespace cairn::node
