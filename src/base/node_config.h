// SPDX-License-Identifier: Apache-2.0
//
// The configuration of one node service, already validated and resolved.
//
// The command line resolves it (defaults by looking at the machine, configuration file,
// environment, flags) and node::run_service() consumes it. It is never
// parsed twice and the service adds no defaults of its own, so `cairn config show` prints what
// really holds.
//
// Thread safety: a plain value. Ownership: owns its strings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/checksums.h"
#include "base/file_rule.h"
#include "base/handling.h"
#include "base/huge_pages.h"

namespace cairn {

// One file tier, below RAM; the order in the vector is the order of the hierarchy, fastest first.
struct FileTierConfig {
  std::string name;       // unique, [A-Za-z0-9_-]+, never "ram"
  std::string directory;  // absolute, exists, writable, not on tmpfs
  uint64_t capacity_bytes = 0;
  // Its device keeps what it has when the machine fails: a part of the tier is the node's log.
  bool is_durable = false;
};

// A resolved option as `cairn config show` prints it and the control command "config" answers it.
struct ResolvedOption {
  std::string name;   // "ram.capacity"
  std::string value;  // "6 GiB"
  std::string
      source;  // "default" | "found: ..." | "FILE:LINE" | "environment CAIRN_..." | "command line"
};

struct NodeConfig {
  // Identity. The run root is private to the user (0700) and exists when the service starts; the
  // launcher also created node_directory and holds nothing in it but config.yaml and node.log.
  std::string name;      // "run-4711" for a private node, else the name given to `cairn up`
  std::string run_root;  // "/run/user/1000/cairn"
  std::string
      node_directory;  // run_root + "/" + name: client.sock, control.sock, node.pid, node.log

  // RAM tier. 0 bytes means that the node has none and works with its file tiers alone.
  uint64_t ram_capacity_bytes = 0;
  HugePages huge_pages = HugePages::kAuto;

  // File tiers, fastest first; empty where the user named none and no suitable disk was found.
  std::vector<FileTierConfig> tiers;

  // What becomes of a page whose bytes are not what they were.
  Checksums checksums = Checksums::kMovement;

  // The log of the durable tier, which has so much of the tier's capacity. 0: there is none.
  uint64_t durable_log_bytes = 0;
  // Dirty data gets to the log at the latest after so long without any fsync; 0: never.
  uint32_t checkpoint_seconds = 0;

  // Scratch: these directories are private to the node, nothing in them is stored. Where the other
  // tiers have no room, their data goes to a swap file of at most this size in swap_directory.
  std::vector<std::string> scratch_directories;
  std::string swap_directory;
  uint64_t swap_capacity_bytes = 0;

  // Write-back. Dirty data is written at the latest flush_delay_ms after it became dirty, by
  // flush_streams parallel writers, and at once above flush_dirty_high_percent of a tier.
  uint32_t flush_delay_ms = 500;
  uint32_t flush_streams = 2;
  uint32_t flush_dirty_high_percent = 60;
  uint32_t profile_idle_ms = 30'000;  // measure tiers after so long without file calls; 0: never
  uint32_t flush_retry_ms = 1000;     // first retry after an error of the backing store; doubles

  // How files are treated: by the rules, in their order, else by what follows them. The rules are
  // those of schema_file, checked, so that nobody needs to read the file again.
  std::string schema_file;  // absolute; empty: none
  std::vector<FileRule> rules;
  BufferingMode mode = BufferingMode::kAsync;
  FlushTrigger trigger = FlushTrigger::kPeriodic;
  Durability durability = Durability::kStore;       // kNode: there is a durable tier
  uint64_t flush_amount_bytes = uint64_t{4} << 20;  // dirty bytes that make a file due at once
  std::string placement_policy = "max-bandwidth";   // or the absolute path of a plugin

  // Eviction starts when less than evict_low_percent of a tier is free and stops at
  // evict_high_percent.
  uint32_t evict_low_percent = 5;
  uint32_t evict_high_percent = 10;

  // Which blocks leave: what this expert of replacement would not hold
  // (policy/replacement/experts.h).
  std::string replacement_expert = "ws-plus";
  // Clean blocks that leave a tier go to the next one if that is worth it; false: in any case.
  bool admits_by_value = true;

  // The service fetches ahead while no more than so much of RAM waits for its use; 0: never.
  uint32_t prefetch_percent = 25;
  bool balances_reads = false;
  bool prefetches_by_heat = false;
  // absolute; of declared orders (service/learning/declared_orders.h); empty: none
  std::string orders_file;
  // absolute; a plugin (service/plugins/predictor_plugin.h); empty: none
  std::string predictor_file;
  std::string remember_directory;  // absolute; of orders of reads for the next node; empty: none
  // Tests let the service lose the other events (base/test_capacities.h); no option sets it.
  uint32_t events_keep_percent = 100;

  // Sizes of the fixed tables. objects_max 0: the service derives it from the capacities.
  uint32_t clients_max = 1024;
  uint64_t objects_max = 0;

  // The directories that the run manages, so that `status` and `config` can say it; the clients get
  // the same by CAIRN_BUFFER and CAIRN_EXCLUDE. Empty: the working directory of each run.
  std::vector<std::string> buffer_directories;
  std::vector<std::string> buffer_exclude;

  // True for a node that `cairn run` started for itself: it may exit when its run has ended.
  bool private_node = false;

  // The service writes "ready\n", or one line of error text, to this descriptor and closes it. -1:
  // none.
  int ready_fd = -1;

  // Every option with its value and where it came from, in table order (control command "config").
  std::vector<ResolvedOption> resolved;
};

// The tier that has the node's log, as an index of `tiers`; their number when none has.
inline size_t durable_tier_of(const NodeConfig& config) {
  size_t index = 0;
  while (index < config.tiers.size() && !config.tiers[index].is_durable) ++index;
  return index;
}

}  // namespace cairn

namespace cairn::node {
// The node service takes the resolved configuration as it is; service/node/service.h declares
// int run_service(const ServiceConfig& config).
using ServiceConfig = ::cairn::NodeConfig;
// The name of tier `index`: 0 is "ram", and the one past the file tiers "swap".
inline std::string tier_name(const NodeConfig& config, unsigned index) {
  if (index == 0) return "ram";
  return index > config.tiers.size() ? std::string("swap") : config.tiers[index - 1].name;
}

}  // namespace cairn::node
