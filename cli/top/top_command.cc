// SPDX-License-Identifier: Apache-2.0
#include "cli/top/top_command.h"

#include <signal.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "cli/node/control_client.h"
#include "cli/node/json_fields.h"
#include "cli/node/run_directory.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/top/live_terminal.h"
#include "cli/top/rate_history.h"
#include "cli/top/top_screen.h"

namespace cairn::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct TopOptions {
  std::string node;
  double interval = 1;
  std::uint64_t count = 0;  // 0: without end
  bool once = false;
  bool csv = false;
  Clock::duration pause() const {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(interval));
  }
};

// A node as it is watched: its last document, and the rates up to it.
class Watched {
 public:
  explicit Watched(const NodePaths& paths) : paths_(paths) {}

  // Throws Failure when nobody answers.
  void look() {
    take(ask([this] { return client_->request({{"command", "status"}}); }));
  }

  // The same, where a key is answered at once, and a node that is gone stays on the screen.
  void look_while_keys_may_come(const LiveTerminal& terminal) {
    try {
      const Json reply = ask([&] {
        client_->watch(terminal.descriptor());
        return client_->request({{"command", "status"}},
                                [](const Json& progress) { return !progress.is_null(); });
      });
      if (reply.is_null()) return;
      take(reply);
      trouble_.clear();
    } catch (const Failure&) {
      client_.reset();
      rates_.note_gap();
      trouble_ = "NO ANSWER from node " + paths_.name + ": it has ended, or starts anew; retrying";
    }
  }

  const NodePaths& paths() const { return paths_; }
  const Json& status() const { return status_; }
  const RateHistory& rates() const { return rates_; }
  const std::string& trouble() const { return trouble_; }

 private:
  // A node that has few places left for connections ends one after its answer.
  template <typename Request>
  Json ask(Request&& request) {
    if (client_) {
      try {
        return request();
      } catch (const Failure&) {
        client_.reset();
      }
    }
    client_.emplace(paths_);
    return request();
  }

  void take(const Json& reply) {
    status_ = member(reply, "status");
    rates_.add(rate_counters(status_));
  }

  std::optional<ControlClient> client_;
  NodePaths paths_;
  Json status_;
  RateHistory rates_;
  std::string trouble_;
};

double unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// Whether there is a reader still: one that has gone has had enough.
bool print_to_reader(const std::string& text) {
  if (write_fully(STDOUT_FILENO, text)) return true;
  if (errno == EPIPE) return false;
  throw Failure(std::string("top: standard output: ") + std::strerror(errno),
                "write to a file system with room");
}

int print_csv(const TopOptions& options) {
  Watched node(select_node(options.node));
  node.look();
  if (!print_to_reader(csv_head())) return kExitOk;
  auto due = Clock::now();
  for (std::uint64_t line = 0; options.count == 0 || line < options.count; ++line) {
    due = std::max(due + options.pause(), Clock::now());
    std::this_thread::sleep_until(due);
    node.look();
    if (!print_to_reader(csv_line(node.status(), node.rates(), unix_seconds()))) break;
  }
  return kExitOk;
}

int print_once(const TopOptions& options) {
  Watched node(select_node(options.node));
  node.look();
  std::this_thread::sleep_for(options.pause());
  node.look();
  ScreenShape shape;
  shape.is_ascii = is_ascii_locale();
  shape.has_keys = false;
  ScreenView view;
  view.node = node.paths().name;
  std::string text;
  for (const ScreenLine& line : screen_lines(node.status(), node.rates(), view, shape))
    text += line.text + "\n";
  (void)print_to_reader(text);
  return kExitOk;
}

// The live node whose name comes after this one; this one when there is no other.
std::string next_node(const std::string& name) {
  const std::vector<std::string> nodes = live_nodes();
  const auto next = std::upper_bound(nodes.begin(), nodes.end(), name);
  if (next != nodes.end()) return *next;
  return nodes.empty() ? name : nodes.front();
}

class LiveTop {
 public:
  explicit LiveTop(const TopOptions& options)
      : options_(options), node_(std::in_place, select_node(options.node)) {
    node_->look();  // before the terminal is taken: a failure is said as every command says it
  }

  // Returns: the signal that has ended it, or 0. The terminal is given back.
  int run() {
    LiveTerminal terminal;
    auto due = Clock::now() + options_.pause();
    std::uint64_t looks = 0;
    while (!is_over_) {
      paint(terminal);
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now()).count();
      const int key = terminal.key(static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000)));
      if (key != LiveTerminal::kNone) on_key(key, terminal);
      if (Clock::now() < due || is_over_) continue;
      node_->look_while_keys_may_come(terminal);
      due = Clock::now() + options_.pause();
      is_over_ = options_.count != 0 && ++looks == options_.count;
    }
    return terminal.end_signal();
  }

 private:
  void paint(LiveTerminal& terminal) {
    view_.node = node_->paths().name;
    view_.trouble = node_->trouble();
    terminal.paint(screen_lines(node_->status(), node_->rates(), view_, terminal.shape()));
  }

  void on_key(int key, const LiveTerminal& terminal) {
    constexpr int kControlC = 3;
    if (key == 'q' || key == kControlC || key == LiveTerminal::kClosed) is_over_ = true;
    if (key == LiveTerminal::kEnded) is_over_ = true;
    if (key == 's') view_.order = FileOrder::kSize;
    if (key == 'a') view_.order = FileOrder::kAge;
    if (key == 'n') view_.order = FileOrder::kName;
    if (key == 'r') view_.is_reversed = !view_.is_reversed;
    if (key == 'U') view_.run_order = RunOrder::kUsed;
    if (key == 'S') view_.run_order = RunOrder::kStored;
    if (key == 'A') view_.run_order = RunOrder::kAge;
    if (key == 'C') view_.run_order = RunOrder::kCommand;
    if (key == 'R') view_.runs_are_reversed = !view_.runs_are_reversed;
    if (key == '\t') show_next(terminal);
  }

  void show_next(const LiveTerminal& terminal) {
    const std::string name = next_node(node_->paths().name);
    if (name == node_->paths().name) return;
    node_.emplace(node_paths(name));
    node_->look_while_keys_may_come(terminal);
  }

  const TopOptions options_;
  std::optional<Watched> node_;
  ScreenView view_;
  bool is_over_ = false;
};

}  // namespace

int command_top(const Arguments& arguments) {
  CLI::App app("Shows what a node does, live: tiers, rates, runs, files that are not stored.",
               "cairn top");
  TopOptions options;
  add_text(app, "--node", options.node, kNodeHelp, "NAME");
  app.add_option("--interval", options.interval, "Ask the node every SECONDS (default: 1)")
      ->type_name("SECONDS")
      ->check(number_between(0.1, 3600.0));
  auto* once = app.add_flag("--once", options.once, "Print one screen after one interval, as text");
  app.add_flag("--csv", options.csv, "Print one line of figures per interval")->excludes(once);
  app.add_option("--count", options.count, "End after NUMBER intervals")
      ->type_name("NUMBER")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
      ->excludes(once);
  app.footer(
      "Keys: q or Ctrl-C quit; s, a, n sort files by size, age, name; r reverses; U, S, A, C sort "
      "runs\nby used, stored, age, command; R reverses; Tab shows the next node.\nBars: # not "
      "stored, = stored as well, . free.\n\n"
      "Examples:\n"
      "  cairn top --node job\n"
      "  cairn top --node job --csv --interval 10 > job.csv");
  parse(app, arguments);
  CAIRN_CHECK(options.interval > 0);
  if (options.once) return print_once(options);
  if (options.csv) return print_csv(options);
  const int signal = LiveTop(options).run();
  if (signal == 0) return kExitOk;
  // So that the parent process sees which signal has ended it.
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  return 128 + signal;
}

}  // namespace cairn::cli
