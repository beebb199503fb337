// SPDX-License-Identifier: Apache-2.0
//
// `cairn trace record | make | info | misses | replay`: a node records the accesses of programs, or
// a model makes some (trace_make_command.cc); the command counts them, says what caches would have
// missed (trace_misses_command.cc), and replays them (trace_replay_command.cc).
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "base/size_text.h"
#include "cli/launch/signal_watch.h"
#include "cli/node/control_client.h"
#include "cli/node/json_fields.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/terminal/paths.h"
#include "cli/trace/trace_command.h"
#include "cli/trace/trace_input.h"

namespace cairn::cli {
namespace {

// Until a signal comes, or so many seconds have passed.
void wait_for_end(SignalWatch& signals, double seconds) {
  pollfd entry{signals.descriptor(), POLLIN, 0};
  (void)::poll(&entry, 1, seconds > 0 ? static_cast<int>(seconds * 1000) : -1);
}

int record(const Arguments& arguments) {
  CLI::App app("Records the accesses of programs on a node, until Ctrl-C or for some seconds.",
               "cairn trace record");
  std::string path;
  std::string node;
  double seconds = 0;
  app.add_option("path", path, "The trace to write")->type_name("TRACE")->required();
  add_text(app, "--node", node, kNodeHelp, "NAME");
  app.add_option("--seconds", seconds, "Stop by itself after SECONDS")
      ->type_name("SECONDS")
      ->check(number_between(0.0, 2e6));
  app.footer("Example:\n  cairn trace record --node job --seconds 60 job.trace");
  parse(app, arguments);
  ControlClient client(select_node(node));
  SignalWatch signals;
  client.request({{"command", "trace-start"}, {"path", absolute_path(path)}});
  wait_for_end(signals, seconds);
  const Json reply = client.request({{"command", "trace-stop"}});
  const uint64_t lost = unsigned_field(reply, "lost");
  print(fmt::format("{}: {} events, {}{}\n", printable(path), unsigned_field(reply, "events"),
                    format_size(unsigned_field(reply, "bytes")),
                    lost == 0 ? "" : fmt::format("; {} more came too fast and are missing", lost)));
  return kExitOk;
}

int info(const Arguments& arguments) {
  CLI::App app("Counts the events of a trace.", "cairn trace info");
  std::string path;
  app.add_option("path", path, "The trace")->type_name("TRACE")->required();
  app.footer("Example:\n  cairn trace info job.trace");
  parse(app, arguments);
  const auto trace = open_trace_or_fail(path);
  std::array<uint64_t, kTraceKinds> events{};
  std::array<uint64_t, kTraceKinds> bytes{};
  uint64_t total = 0;
  uint64_t end_ns = 0;
  TraceEvent event;
  while (trace->next(&event)) {
    ++total;
    ++events[static_cast<unsigned>(event.kind)];
    bytes[static_cast<unsigned>(event.kind)] += event.length;
    end_ns = std::max(end_ns, event.time_ns);
  }
  require_whole(*trace, "what comes before it was read");
  std::string text = fmt::format("{}: {} events in {}, {} files, {} processes\n", printable(path),
                                 total, format_duration(static_cast<double>(end_ns) / 1e9),
                                 trace->names().files.count(), trace->names().processes.count());
  constexpr std::array<const char*, kTraceKinds> kNames = {
      "opened",  "closed",  "read, missed", "read, hit", "read, fetched ahead",
      "written", "advised", "synchronised"};
  std::vector<std::vector<std::string>> rows = {{"what", "times", "bytes"}};
  for (unsigned kind = 0; kind < kTraceKinds; ++kind) {
    if (events[kind] == 0) continue;
    rows.push_back({kNames[kind], std::to_string(events[kind]),
                    kind < 2 || kind == static_cast<unsigned>(TraceKind::kSync)
                        ? std::string("-")
                        : format_size(bytes[kind])});
  }
  print(text + format_table(rows, "lrr"));
  say_warning(*trace);
  return kExitOk;
}

}  // namespace

int command_trace(const Arguments& arguments) {
  const auto [verb, rest] = split_verb(arguments);
  if (verb == "record") return record(rest);
  if (verb == "info") return info(rest);
  if (verb == "replay") return replay_trace(rest);
  if (verb == "misses") return trace_misses(rest);
  if (verb == "make") return trace_make(rest);
  if (verb == "--help" || verb == "-h") {
    print(
        "Records accesses of programs, shows them, and replays them through policies or on "
        "files.\n\n"
        "  cairn trace record TRACE               record on a running node\n"
        "  cairn trace make MODEL TRACE           write one as a model of traffic has it\n"
        "  cairn trace info TRACE                 count the events of a trace\n"
        "  cairn trace misses TRACE               what caches of every size would miss, and how "
        "large\n"
        "                                         one has to be\n"
        "  cairn trace replay TRACE               count what replacement policies would have "
        "missed\n"
        "  cairn trace replay --files DIR TRACE   repeat the accesses on files below DIR\n\n"
        "Example:\n  cairn trace record --node job --seconds 60 job.trace\n");
    return kExitOk;
  }
  throw Failure(verb.empty() ? "trace: record, make, info, misses or replay?"
                             : fmt::format("trace: unknown word \"{}\"", verb),
                "`cairn trace --help` says what each does");
}

}  // namespace cairn::cli
