// SPDX-License-Identifier: Apache-2.0
// What the command line of `cairn advise` says, and the machine and plans that follow from it.
//
// Thread safety: reads the system and the store of profiles. Ownership: values. Errors: Failure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/configuration/settings.h"
#include "policy/advice/advice.h"

namespace cairn::cli {

struct AdviceWords {
  std::string trace;
  std::string node;              // a running one
  std::string store;             // a directory of the slow files
  CommandLineSettings settings;  // --config, --ram, --tier
  std::vector<std::string> what_if;
  std::optional<std::string> target;
  std::optional<double> fsyncs;
  bool json = false;
  std::string write;
  bool force = false;
};

struct AdviceQuestion {
  advice::Machine machine;
  advice::Wishes wishes;
  std::string store_directory;         // empty where --what-if names another store
  bool assumes_no_page_cache = false;  // because the store is behind a network
  double timing_spread = 0;            // of the machine's costs (machine_costs.h)
};

// Errors: Failure for a size, a key or a place that cannot be.
AdviceQuestion question_of(const AdviceWords& words);

// The keys of --what-if for --help.
inline constexpr const char* kWhatIfHelp =
    "Advise on this configuration and machine: KEY=VALUE,... with the keys ram, nvme, ssd, hdd "
    "(SIZE of a tier), policy, expert, trigger, mode, durability, prefetch, streams, page-cache "
    "and dirty (SIZE, what the kernel keeps and what it takes before programs wait), store "
    "(nvme, ssd, hdd, network) and nodes (1, as there is no advice on several yet)";

}  // namespace cairn::cli
