// SPDX-License-Identifier: Apache-2.0
//
// `cairn trace record | info | replay`: what programs access, recorded on a node; looked at; put
// through the policies.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "base/size_text.h"
#include "cli/control_client.h"
#include "cli/failure.h"
#include "cli/json_fields.h"
#include "cli/learning_commands.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/signal_watch.h"
#include "cli/trace_replay.h"
#include "replacement/experts.h"
#include "trace/open_trace.h"

namespace cairn::cli {
namespace {

std::unique_ptr<TraceSource> open_or_fail(const std::string& path) {
  auto trace = open_trace(path);
  if (!trace)
    throw Failure(trace.status().message(),
                  "traces are what `cairn trace record` writes, the text of darshan-dxt-parser, "
                  "or CSV");
  return std::move(trace.value());
}

void say_warning(const TraceSource& trace) {
  if (const std::string warning = trace.warning(); !warning.empty()) say(warning);
}

// Until a signal comes, or so many seconds have passed.
void wait_for_end(SignalWatch& signals, double seconds) {
  pollfd entry{signals.descriptor(), POLLIN, 0};
  (void)::poll(&entry, 1, seconds > 0 ? static_cast<int>(seconds * 1000) : -1);
}

int record(const Arguments& arguments) {
  CLI::App app("Records what programs on a node access, until Ctrl-C or for some seconds.",
               "cairn trace record");
  std::string path;
  std::string node;
  double seconds = 0;
  app.add_option("path", path, "The trace to write")->type_name("TRACE")->required();
  add_text(app, "--node", node, kNodeHelp, "NAME");
  app.add_option("--seconds", seconds, "Stop by itself after SECONDS")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 2e6));
  app.footer("Example:\n  cairn trace record --node job --seconds 60 job.trace");
  parse(app, arguments);
  ControlClient client(select_node(node));
  SignalWatch signals;
  client.request({{"command", "trace-start"}, {"path", absolute_path(path)}});
  wait_for_end(signals, seconds);
  const Json reply = client.request({{"command", "trace-stop"}});
  const uint64_t lost = unsigned_field(reply, "lost");
  print(
      fmt::format("{}: {} events, {}{}\n", printable(path), unsigned_field(reply, "events"),
                  format_size(unsigned_field(reply, "bytes")),
                  lost == 0 ? "" : fmt::format("; {} more came too fast and are not in it", lost)));
  return kExitOk;
}

int info(const Arguments& arguments) {
  CLI::App app("Says what is in a trace.", "cairn trace info");
  std::string path;
  app.add_option("path", path, "The trace")->type_name("TRACE")->required();
  app.footer("Example:\n  cairn trace info job.trace");
  parse(app, arguments);
  const auto trace = open_or_fail(path);
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
  if (!trace->status()) throw Failure(trace->status().message(), "what comes before it was read");
  std::string text = fmt::format("{}: {} events in {}, {} files, {} processes\n", printable(path),
                                 total, format_duration(static_cast<double>(end_ns) / 1e9),
                                 trace->names().files.count(), trace->names().processes.count());
  constexpr std::array<const char*, kTraceKinds> kNames = {
      "opened", "closed", "read, missed", "read, hit", "read, fetched ahead", "written", "advised"};
  std::vector<std::vector<std::string>> rows = {{"what", "times", "bytes"}};
  for (unsigned kind = 0; kind < kTraceKinds; ++kind) {
    if (events[kind] == 0) continue;
    rows.push_back({kNames[kind], std::to_string(events[kind]),
                    kind < 2 ? std::string("-") : format_size(bytes[kind])});
  }
  print(text + format_table(rows, "lrr"));
  say_warning(*trace);
  return kExitOk;
}

std::string replay_text(const ReplayTable& table, const ReplayOptions& options) {
  std::string text =
      fmt::format("{} references to {} pages of {}; misses in percent\n", table.references,
                  table.footprint_pages, format_size(options.page_bytes));
  std::vector<std::string> head = {"cache", "pages", "best possible"};
  head.insert(head.end(), options.experts.begin(), options.experts.end());
  std::vector<std::vector<std::string>> rows = {head};
  const auto percent = [&](uint64_t misses) {
    const auto of = static_cast<double>(std::max<uint64_t>(table.references, 1));
    return fmt::format("{:.1f}", 100 * static_cast<double>(misses) / of);
  };
  for (std::size_t at = 0; at < table.rows.size(); ++at) {
    const ReplayRow& row = table.rows[at];
    std::vector<std::string> cells = {fmt::format("{:g} %", options.percents[at]),
                                      std::to_string(row.pages), percent(row.misses_min)};
    for (const uint64_t misses : row.misses) cells.push_back(percent(misses));
    rows.push_back(std::move(cells));
  }
  return text + format_table(rows, std::string(head.size(), 'r'));
}

void check_experts(const std::vector<std::string>& experts) {
  for (const std::string& name : experts) {
    if (make_expert_named(name, 1) != nullptr) continue;
    std::vector<std::string> names;
    for (const ExpertMaker& maker : kExpertMakers) names.emplace_back(maker.name);
    throw Failure(fmt::format("no expert is called \"{}\"", name),
                  fmt::format("the experts are {}", fmt::join(names, ", ")));
  }
}

int replay_trace(const Arguments& arguments) {
  CLI::App app("Puts a trace through policies of replacement and counts what each would miss.",
               "cairn trace replay");
  std::string path;
  std::string page;
  ReplayOptions options;
  app.add_option("path", path, "The trace")->type_name("TRACE")->required();
  add_list(app, "--expert", options.experts, "An expert of replacement (default: the usual ones)",
           "NAME");
  add_text(app, "--page", page, "Bytes that are one reference (default: 512K)", "SIZE");
  app.footer("Example:\n  cairn trace replay --expert ws-plus --expert lru job.trace");
  parse(app, arguments);
  if (!page.empty()) {
    const auto bytes = parse_size(page);
    if (!bytes || *bytes == 0)
      throw Failure(fmt::format("--page: \"{}\" is not a size", page), "write one such as 64K");
    options.page_bytes = *bytes;
  }
  if (options.experts.empty()) options.experts = {"ws-plus", "learned", "s3-fifo", "lirs", "lru"};
  check_experts(options.experts);
  const auto trace = open_or_fail(path);
  const auto table = replay(*trace, options);
  if (!table) throw Failure(table.status().message(), "record it again, or cut it off before that");
  print(replay_text(table.value(), options));
  say_warning(*trace);
  return kExitOk;
}

}  // namespace

int command_trace(const Arguments& arguments) {
  const std::string verb = arguments.empty() ? "" : arguments.front();
  const Arguments rest =
      arguments.empty() ? Arguments() : Arguments(arguments.begin() + 1, arguments.end());
  if (verb == "record") return record(rest);
  if (verb == "info") return info(rest);
  if (verb == "replay") return replay_trace(rest);
  if (verb == "--help" || verb == "-h") {
    print(
        "What programs access, recorded, looked at, and put through the policies.\n\n"
        "  cairn trace record TRACE   record on a running node\n"
        "  cairn trace info TRACE     what is in a trace\n"
        "  cairn trace replay TRACE   what policies of replacement would have missed\n\n"
        "Example:\n  cairn trace record --node job --seconds 60 job.trace\n");
    return kExitOk;
  }
  throw Failure(verb.empty() ? "trace: record, info or replay?"
                             : fmt::format("trace: unknown word \"{}\"", verb),
                "`cairn trace --help` says what each does");
}

}  // namespace cairn::cli
