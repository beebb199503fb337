// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/recorded_run.h"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include "base/check.h"
#include "cli/commands/node_launcher.h"
#include "cli/commands/run_command.h"
#include "cli/configuration/configuration.h"
#include "cli/node/control_client.h"
#include "cli/node/json_fields.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

constexpr double kNodeEndSeconds = 30;

// Ends the node however the run ends.
class RecordingNode {
 public:
  explicit RecordingNode(const Configuration& configuration) : node_(launch_node(configuration)) {}
  ~RecordingNode() {
    try {
      ControlClient(node_.paths).request({{"command", "shutdown"}, {"drain", true}});
    } catch (const Failure&) {
      // The connection closes when the service ends, as it should.
    }
    if (!wait_for_end(node_, kNodeEndSeconds).has_ended)
      say(fmt::format("node {} has not ended after {} s (log {})", node_.paths.name,
                      kNodeEndSeconds, node_.paths.log_file));
  }
  RecordingNode(const RecordingNode&) = delete;
  RecordingNode& operator=(const RecordingNode&) = delete;

  const NodePaths& paths() const { return node_.paths; }

 private:
  LaunchedNode node_;
};

}  // namespace

std::string make_trace_directory() {
  const char* place = ::getenv("TMPDIR");
  std::string directory =
      fmt::format("{}/cairn-advise-XXXXXX", place != nullptr && *place ? place : "/tmp");
  if (::mkdtemp(directory.data()) == nullptr)
    throw Failure(fmt::format("{}: {}", directory, std::strerror(errno)),
                  "set TMPDIR to a directory that you may write");
  CAIRN_CHECK(!directory.empty());
  return directory;
}

RecordedRun::RecordedRun() : directory_(make_trace_directory()) {}

RecordedRun::~RecordedRun() {
  ::unlink(trace().c_str());
  ::unlink(report().c_str());
  ::rmdir(directory_.c_str());
  ::sigprocmask(SIG_SETMASK, &signals_.original_mask(), nullptr);
}

// One that ends a command has come before the program was started, which would else get it.
void RecordedRun::fail_if_interrupted() {
  while (const std::optional<ReceivedSignal> signal = signals_.next()) {
    if (signal->number == SIGCHLD || signal->number == SIGWINCH) continue;
    throw Failure(fmt::format("ended by signal {} before the program started", signal->number), "",
                  128 + signal->number);
  }
}

void RecordedRun::execute(const CommandLineSettings& settings,
                          const std::vector<std::string>& command_line) {
  CommandLineSettings own = settings;
  own.flags["node.name"] = {private_node_name()};
  const Configuration configuration = resolve_configuration(own);
  int status = 0;
  {
    const RecordingNode node(configuration);
    fail_if_interrupted();
    ControlClient client(node.paths());
    client.request({{"command", "trace-start"}, {"path", trace()}});
    RunOptions options;
    options.node = node.paths().name;
    options.report_json = report();
    options.command_line = command_line;
    options.settings.flags["report"] = {"off"};
    status = run_program(options, signals_);
    const Json recorded = client.request({{"command", "trace-stop"}});
    if (const uint64_t lost = unsigned_field(recorded, "lost"); lost > 0)
      say(fmt::format("{} accesses came too fast to be recorded; advice is from the others", lost));
  }
  if (status != 0)
    throw Failure(fmt::format("{} has ended with status {}, so there is no advice",
                              printable(command_line.front()), status),
                  "see that it succeeds under `cairn run` first", status);
  read_report();
}

void RecordedRun::read_report() {
  std::ifstream file(report());
  const Json document = Json::parse(file, nullptr, false);
  if (document.is_discarded()) return;
  seconds_ = number_field(document, "wall_seconds");
  io_seconds_ = number_field(member(document, "report"), "io_seconds");
  CAIRN_CHECK(seconds_ >= 0);
}

}  // namespace cairn::cli
