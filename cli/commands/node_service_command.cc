// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/node_service_command.h"

#include <fmt/format.h>
#include <malloc.h>

#include <cstdlib>

#include "base/node_config.h"
#include "base/test_capacities.h"
#include "cli/configuration/configuration.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "service/node/service.h"

namespace cairn::cli {
namespace {

// Every arena of malloc() keeps what it once needed, and there may be eight for a core. The service
// has many threads, which allocate little.
constexpr int kArenasMax = 4;

}  // namespace

int run_node_service(const NodeServiceOptions& options) {
  (void)::mallopt(M_ARENA_MAX, kArenasMax);
  CommandLineSettings settings;
  settings.config_file = options.config_file;
  if (!options.name.empty()) settings.flags["node.name"] = {options.name};
  settings.ignore_environment = true;
  NodeConfig config;
  try {
    config = resolve_configuration(settings).node;
  } catch (const Failure& failure) {
    if (options.ready_descriptor >= 0) {
      (void)write_fully(options.ready_descriptor, std::string(failure.what()) + "\n");
    }
    throw;
  }
  config.ready_fd = options.ready_descriptor;
  config.events_keep_percent = capacity_of("event_percent", config.events_keep_percent);
  if (const char* capacities = std::getenv(kTestCapacitiesVariable)) {
    say(fmt::format("{} is set, as tests do: {}", kTestCapacitiesVariable, capacities));
  }
  if (options.kept_memory >= 0) return node::run_succeeding_service(config, options.kept_memory);
  return node::run_kept_service(config);
}

}  // namespace cairn::cli
