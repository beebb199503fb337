// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/node_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/size_text.h"
#include "cli/commands/node_launcher.h"
#include "cli/configuration/configuration.h"
#include "cli/node/drain_view.h"
#include "cli/node/json_fields.h"
#include "cli/node/run_directory.h"
#include "cli/run/run_report.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

constexpr double kShutdownSeconds = 60;
constexpr const char* kPrivatePrefix = "run-";

Json drain(ControlClient& client, std::optional<double> timeout_seconds) {
  DrainView view;
  Json request = {{"command", "drain"}};
  if (timeout_seconds) request["timeout_seconds"] = *timeout_seconds;
  return client.request(request, [&view](const Json& progress) {
    view.update(DrainProgress::from_json(progress));
    return true;
  });
}

// Says which files are left. Returns: the exit status.
int say_unstored(const std::string& node, const Json& reply) {
  for (const std::string& line :
       unstored_lines(node, member(reply, "unstored"), unsigned_field(reply, "unstored_total"))) {
    say(line);
  }
  return kExitNotStored;
}

Json request_status(const NodePaths& paths) {
  const Json reply = ControlClient(paths).request({{"command", "status"}});
  return member(reply, "status");
}

// Asks the service to end and waits until it has gone.
// Returns: an empty object; or the service's reply when it stays, because something came in that it
// cannot store.
Json end_service(const NodePaths& paths, pid_t service, bool discard) {
  try {
    const Json reply = ControlClient(paths).request(
        {{"command", "shutdown"}, {"drain", !discard}, {"discard", discard}});
    if (!bool_field(reply, "stopped", true)) return reply;
  } catch (const Failure&) {
    // The connection closes when the service ends; wait_for_end() shows whether it has.
  }
  if (!wait_for_end(paths, service, kShutdownSeconds)) {
    throw Failure(fmt::format("node {} has not ended after {} s (process {})", paths.name,
                              kShutdownSeconds, service),
                  fmt::format("its log is {}", paths.log_file), kExitInternal);
  }
  return Json::object();
}

// The node stays, and so does what it holds. Returns: the exit status.
int say_kept(const NodePaths& paths, const Json& reply) {
  say(fmt::format("node {} stays, because it keeps data that is not stored", paths.name));
  const int exit_status = say_unstored(paths.name, reply);
  say(fmt::format("to give that data up: cairn down --node {} --discard", paths.name));
  return exit_status;
}

// The node of a run that ended without everything stored has no further use once it is empty.
bool is_left_over(const NodePaths& paths, const Json& status) {
  return paths.name.rfind(kPrivatePrefix, 0) == 0 && member(status, "runs").empty() &&
         member(status, "clients").empty();
}

}  // namespace

int start_node(const CommandLineSettings& settings) {
  const std::string name = settings.flag("node.name");
  if (name.rfind(kPrivatePrefix, 0) == 0) {
    throw Failure(
        fmt::format("\"{}\": names that begin with \"run-\" are those of private nodes of "
                    "`cairn run`",
                    name),
        "choose another name");
  }
  const Configuration configuration = resolve_configuration(settings);
  for (const std::string& warning : configuration.warnings) say("warning: " + warning);
  const LaunchedNode node = launch_node(configuration);
  std::string tiers = fmt::format("RAM {}", format_size(configuration.node.ram_capacity_bytes));
  for (const FileTierConfig& tier : configuration.node.tiers) {
    tiers +=
        fmt::format(", {} {} in {}", tier.name, format_size(tier.capacity_bytes), tier.directory);
  }
  say(fmt::format("node {} is ready: {}", node.paths.name, tiers));
  return kExitOk;
}

int stop_node(const StopOptions& options) {
  const NodePaths paths = select_node(options.node);
  const Json status = request_status(paths);
  const auto service = static_cast<pid_t>(unsigned_field(status, "service_pid"));
  const size_t clients = member(status, "clients").size();
  if (clients > 0) {
    say(fmt::format(
        "{} {} still attached; their writes go to the backing store directly from now on", clients,
        clients == 1 ? "process is" : "processes are"));
  }
  if (!options.discard) {
    ControlClient client(paths);
    const Json reply = drain(client, std::nullopt);
    if (!bool_field(reply, "stored", false)) return say_kept(paths, reply);
  }
  if (const Json kept = end_service(paths, service, options.discard); !kept.empty()) {
    return say_kept(paths, kept);
  }
  say(fmt::format(
      "node {} is down, {}", paths.name,
      options.discard ? "data that was not stored is discarded" : "everything is stored"));
  return kExitOk;
}

namespace {

// A node without a launcher ends by itself once everything is stored, and leaves word of that.
bool has_ended_stored(const NodePaths& paths) {
  return ::access((paths.directory + "/stored").c_str(), F_OK) == 0;
}

int drain_live_node(const NodePaths& paths, const DrainOptions& options) {
  // Before the drain: a node that was left over may end by itself once it is empty.
  const Json status = request_status(paths);
  ControlClient client(paths);
  const Json reply = drain(client, options.timeout_seconds);
  if (!bool_field(reply, "stored", false)) return say_unstored(paths.name, reply);
  say(fmt::format("everything on node {} is stored ({})", paths.name,
                  format_duration(number_field(reply, "seconds"))));
  if (is_left_over(paths, status)) {
    const auto service = static_cast<pid_t>(unsigned_field(status, "service_pid"));
    if (const Json kept = end_service(paths, service, false); !kept.empty())
      return say_kept(paths, kept);
    say(fmt::format("its run had ended, so node {} is down", paths.name));
  }
  return kExitOk;
}

}  // namespace

int drain_node(const DrainOptions& options) {
  const NodePaths paths = select_node(options.node);
  try {
    return drain_live_node(paths, options);
  } catch (const Failure&) {
    if (!has_ended_stored(paths)) throw;
    say(fmt::format("node {} has ended: everything is stored", paths.name));
    return kExitOk;
  }
}

int show_status(const StatusOptions& options) {
  const NodePaths paths = select_node(options.node);
  const Json status = request_status(paths);
  if (options.json) {
    print(status.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    print(status_text(status));
  }
  return kExitOk;
}

}  // namespace cairn::cli
