// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/recorded_node.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <optional>

#include "base/check.h"
#include "base/clock.h"
#include "base/size_text.h"
#include "cli/advice/trace_workload.h"
#include "cli/commands/recorded_run.h"
#include "cli/node/control_client.h"
#include "cli/node/json_fields.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

// Until so many seconds have passed or a signal comes that ends a command.
void wait_for_end(SignalWatch* signals, double seconds) {
  CAIRN_CHECK(signals != nullptr);
  const int64_t end_ns = monotonic_ns() + static_cast<int64_t>(seconds * 1e9);
  for (int64_t now = monotonic_ns(); now < end_ns; now = monotonic_ns()) {
    pollfd entry{signals->descriptor(), POLLIN, 0};
    (void)::poll(&entry, 1, static_cast<int>((end_ns - now) / 1'000'000 + 1));
    while (const std::optional<ReceivedSignal> signal = signals->next()) {
      if (signal->number != SIGCHLD && signal->number != SIGWINCH) return;
    }
  }
}

// Before a file of it is looked for: where no such node runs, this says so.
NodePaths running_node(const std::string& name) {
  NodePaths node = select_node(name);
  const ControlClient answers(node);
  return node;
}

}  // namespace

RecordedNode::RecordedNode(const std::string& name)
    : node_(running_node(name)), directory_(make_trace_directory()) {
  CAIRN_CHECK(!node_.name.empty());
  looked_at_.name = node_.name;
}

RecordedNode::~RecordedNode() {
  ::unlink(trace().c_str());
  ::rmdir(directory_.c_str());
  ::sigprocmask(SIG_SETMASK, &signals_.original_mask(), nullptr);
}

advice::Workload RecordedNode::record(double seconds) {
  CAIRN_CHECK(seconds > 0);
  ControlClient client(node_);
  client.request({{"command", "trace-start"}, {"path", trace()}});
  say(fmt::format("recording node {} for {}; Ctrl-C ends that and gives the advice", node_.name,
                  format_duration(seconds)));
  const int64_t began_ns = monotonic_ns();
  wait_for_end(&signals_, seconds);
  const Json reply = client.request({{"command", "trace-stop"}});
  looked_at_.accesses = unsigned_field(reply, "events");
  looked_at_.lost = unsigned_field(reply, "lost");
  take_counters(static_cast<double>(monotonic_ns() - began_ns) / 1e9);
  if (looked_at_.accesses == 0)
    throw Failure(fmt::format("the programs of node {} have accessed nothing within {}", node_.name,
                              format_duration(looked_at_.seconds)),
                  "ask again while one works, or longer: --seconds 60; or advise on a trace");
  return read_workload(trace(), "the programs of node " + node_.name);
}

void RecordedNode::take_counters(double seconds) {
  const Json status = ControlClient(node_).request({{"command", "status"}});
  const Json& counters = member(member(status, "status"), "counters");
  looked_at_.seconds = seconds;
  looked_at_.uptime_seconds = number_field(member(status, "status"), "uptime_seconds");
  looked_at_.read_bytes = number_field(counters, "read_bytes");
  looked_at_.miss_bytes = number_field(counters, "read_miss_bytes");
  looked_at_.write_bytes = number_field(counters, "write_bytes");
}

}  // namespace cairn::cli
