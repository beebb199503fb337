// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/run_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>

#include "base/clock.h"
#include "base/size_text.h"
#include "cli/commands/run_report.h"
#include "cli/configuration/config_file.h"
#include "cli/configuration/configuration.h"
#include "cli/configuration/setting_flags.h"
#include "cli/launch/node_launcher.h"
#include "cli/launch/program_check.h"
#include "cli/launch/program_search.h"
#include "cli/launch/program_start.h"
#include "cli/launch/signal_watch.h"
#include "cli/node/control_client.h"
#include "cli/node/drain_view.h"
#include "cli/node/json_fields.h"
#include "cli/node/run_directory.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/terminal/paths.h"
#include "service/profiler/system_text.h"
#include "service/treatment/rule_json.h"

namespace cairn::cli {
namespace {

// The service has stored everything before it ends, but may have gigabytes of memory to give back.
constexpr double kServiceEndSeconds = 30;

// One run from the first check to the last line. The steps are in the order in which they happen.
class Run {
 public:
  explicit Run(const RunOptions& options) : options_(options) {}

  int execute() {
    const FoundProgram program = find_program(options_.command_line.front());
    if (program.path.empty()) throw Failure(program.message, "", program.exit_status);
    program_path_ = program.path;
    environment_.preload_library = preload_library_path();
    parse_reservations();
    choose_node();
    open_report_file();
    try {
      begin();
    } catch (...) {
      end_private_node();
      throw;
    }
    if (const int refused = start_and_wait(); refused != 0) return refused;
    return finish();
  }

 private:
  void choose_node() {
    const bool attaches = !options_.node.empty() || inside_run();
    if (attaches) {
      refuse_node_options();
      paths_ = select_node(options_.node);
      resolve_for_attached_node();
    } else {
      // Signals are watched before the service exists, so that none can end this process between
      // its start and its end and leave it behind.
      signals_.emplace();
      CommandLineSettings settings = options_.settings;
      settings.flags["node.name"] = {private_node_name()};
      configuration_ = resolve_configuration(settings);
      for (const std::string& warning : configuration_.warnings) say("warning: " + warning);
      launched_ = launch_node(configuration_);
      paths_ = launched_->paths;
      if (options_.verbose) say(fmt::format("started node {} ({})", paths_.name, paths_.directory));
    }
    if (!signals_) signals_.emplace();
  }

  void refuse_node_options() const {
    const std::string_view flag = node_flag(options_.settings);
    if (flag.empty()) return;
    throw Failure(
        fmt::format("{} cannot change a running node", flag),
        fmt::format("leave it out, or start another node: `cairn up --name NAME {} ...`", flag));
  }

  // Short tools are run by the hundred on a node, so nothing is parsed that is not needed.
  void resolve_for_attached_node() {
    configuration_ = resolve_configuration(options_.settings, ConfigurationScope::kAttachedRun);
    const std::string text = profiler::read_text(paths_.config_file);
    refuse_other_version(text);
    node_has_scratch_ = text.find("\n  scratch: []") == std::string::npos;
    NodeConfig& mine = configuration_.node;
    if (!mine.buffer_directories.empty() || !options_.settings.config_file.empty()) return;
    // The usual case, seen without a parser: it would take a tenth of what an attached run may
    // cost.
    if (text.find("directories: []") != std::string::npos &&
        text.find("exclude: []") != std::string::npos)
      return;
    const ConfigFile file = parse_config_text(text, paths_.config_file);
    for (const Setting& setting : file.settings) {
      for (const SettingItem& item : setting.items) {
        if (setting.option->name == "buffer.directories")
          mine.buffer_directories.push_back(item.text);
        if (setting.option->name == "buffer.exclude") mine.buffer_exclude.push_back(item.text);
      }
    }
  }

  // `text` is the node's own configuration file, which says who wrote it.
  void refuse_other_version(const std::string& text) const {
    const std::string_view first = std::string_view(text).substr(0, text.find('\n'));
    constexpr std::string_view kMark = "written by cairn ";
    const size_t at = first.find(kMark);
    if (at == std::string_view::npos) return;
    const std::string_view rest = first.substr(at + kMark.size());
    const std::string_view version = rest.substr(0, rest.find(' '));
    if (version == CAIRN_VERSION) return;
    throw Failure(fmt::format("node {} is of Cairn {}, this command is of {}", paths_.name, version,
                              CAIRN_VERSION),
                  fmt::format("use the command of the same version, or renew the node: `cairn down "
                              "--node {0}`, `cairn up --name {0}`",
                              paths_.name));
  }

  // Opened before the program runs: a place that cannot be written is a mistake to hear of now.
  void open_report_file() {
    if (options_.report_json.empty()) return;
    report_descriptor_ =
        ::open(options_.report_json.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (report_descriptor_ >= 0) return;
    const int error = errno;
    end_private_node();
    throw Failure(fmt::format("--report-json {}: {}", options_.report_json, std::strerror(error)),
                  "name a file that you may write");
  }

  // Before anything is started: a mistake in the size costs no node.
  void parse_reservations() {
    for (const std::string& text : options_.reserve) {
      const size_t at = text.find('=');
      const bool names_tier = at != std::string::npos;
      const std::optional<uint64_t> bytes = parse_size(names_tier ? text.substr(at + 1) : text);
      if (!bytes || *bytes == 0 || at == 0) {
        throw Failure(fmt::format("--reserve {}: not a size", text),
                      "write a size, such as --reserve 2G for the fastest tier, or a tier's name "
                      "and a size, such as --reserve nvme=10G");
      }
      reservations_.push_back(
          {{"tier", names_tier ? text.substr(0, at) : std::string()}, {"bytes", *bytes}});
    }
  }

  void begin() {
    outcome_.node = paths_.name;
    outcome_.private_node = launched_.has_value();
    outcome_.run_id = fmt::format("{}", ::getpid());
    outcome_.command_line = options_.command_line;
    control_.emplace(paths_);
    environment_.client_socket = paths_.client_socket;
    environment_.run_id = outcome_.run_id;
    environment_.allow_io_uring = options_.allow_io_uring;
    environment_.buffer_directories = configuration_.node.buffer_directories;
    environment_.exclude = configuration_.node.buffer_exclude;
    if (environment_.buffer_directories.empty()) {
      environment_.buffer_directories.push_back(working_directory());
    }
    send_run_begin();
  }

  void send_run_begin() {
    Json request = {{"command", "run-begin"},
                    {"run", outcome_.run_id},
                    {"command_line", options_.command_line},
                    {"directory", working_directory()}};
    // A private node has the run's settings as its own.
    const std::optional<FileRule> settings = launched_ ? std::nullopt : own_settings();
    if (settings) request["settings"] = node::rule_to_json(*settings);
    if (!launched_) {
      for (const FileRule& rule : configuration_.node.rules)
        request["rules"].push_back(node::rule_to_json(rule));
    }
    if (options_.weight != 0) request["weight"] = options_.weight;
    if (!reservations_.empty()) request["reserve"] = reservations_;
    for (const std::string& directory : configuration_.run_scratch)
      request["scratch"].push_back(directory);
    const bool waits = settings || !reservations_.empty() || request.contains("rules") ||
                       request.contains("scratch") || node_has_scratch_ ||
                       !configuration_.node.scratch_directories.empty();
    control_->send(request);
    if (!waits) return;
    // The rules are in force before the program starts. Other runs read the answer while it runs:
    // nothing that it could say depends on the wait.
    began_ = control_->receive();
    if (settings) environment_.handling = fmt::format("{:x}", unsigned_field(*began_, "handling"));
    for (const Json& place : member(*began_, "scratch")) {
      scratch_.push_back(ScratchMount{text_field(place, "source"), text_field(place, "target")});
      environment_.buffer_directories.push_back(scratch_.back().target);
    }
  }

  // What this run asks for, over what its node does; nothing when it asks for nothing.
  std::optional<FileRule> own_settings() const {
    FileRule rule;
    rule.pattern = "*";
    rule.mode = configuration_.run_mode;
    rule.trigger = configuration_.run_trigger;
    rule.policy = configuration_.run_policy;
    if (!rule.mode && !rule.trigger && !rule.policy) return std::nullopt;
    return rule;
  }

  // Returns: 0 when the program ran, else the status with which this command ends.
  int start_and_wait() {
    ProgramStart start;
    start.path = program_path_;
    start.arguments = options_.command_line;
    start.environment = program_environment(environment_);
    start.signal_mask = signals_->original_mask();
    start.restore_pipe_signal = signals_->pipe_signal_was_default();
    start.allow_io_uring = options_.allow_io_uring;
    start.scratch = scratch_;
    const double started = monotonic_seconds();
    control_->watch(signals_->descriptor());
    const StartedProgram program = start_program(start);
    if (program.process < 0) {
      end_private_node();
      say(fmt::format("{}: {}: {}", options_.command_line.front(), program.failed_step,
                      std::strerror(program.error)));
      const bool missing = program.error == ENOENT && program.failed_step == std::string("exec");
      return missing ? kExitNotFound : kExitNotExecutable;
    }
    hear_of_begin();
    const int status = wait_for_program(program.process);
    outcome_.wall_seconds = monotonic_seconds() - started;
    outcome_.killed_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    outcome_.exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return 0;
  }

  // Reads the answer to run-begin while the program runs, so that its end waits for run-end alone.
  // Where a signal comes first, finish() reads the answer.
  void hear_of_begin() {
    if (began_) return;
    try {
      const Json reply = control_->receive([](const Json& event) { return !event.is_null(); });
      if (!reply.is_null()) began_ = reply;
    } catch (const Failure& failure) {
      begin_failure_ = failure;
    }
  }

  int wait_for_program(pid_t process) {
    while (true) {
      int status = 0;
      const pid_t ended = ::waitpid(process, &status, WNOHANG);
      if (ended == process) return status;
      const ReceivedSignal signal = signals_->wait();
      if (signal.number == SIGCHLD || signal.number == SIGWINCH) continue;
      if (signal.number == SIGINT || signal.number == SIGTERM) ++interrupts_;
      if (!signal.from_terminal) ::kill(process, signal.number);
    }
  }

  // True when the user has asked a second time to end. The first request was for the program.
  bool interrupted_again() {
    bool again = false;
    while (const auto signal = signals_->next()) {
      const bool ends = signal->number == SIGINT || signal->number == SIGTERM ||
                        signal->number == SIGHUP || signal->number == SIGQUIT;
      if (!ends) continue;
      again = again || interrupts_ > 0;
      if (interrupts_++ == 0) {
        view_.clear();
        say("storing what was written; interrupt again to end at once");
      }
    }
    return again;
  }

  int finish() {
    try {
      if (begin_failure_) throw Failure(*begin_failure_);
      const auto on_event = [this](const Json& progress) {
        if (progress.is_null()) return !interrupted_again();
        view_.update(DrainProgress::from_json(progress));
        return true;
      };
      // The answer to run-begin comes first; null: the user would not wait even for that.
      Json reply = began_ ? *began_ : control_->receive(on_event);
      if (!reply.is_null())
        reply = control_->request({{"command", "run-end"}, {"run", outcome_.run_id}}, on_event);
      view_.clear();
      if (reply.is_null()) return finish_interrupted();
      outcome_.end = reply;
    } catch (const Failure& failure) {
      view_.clear();
      return finish_unconfirmed(failure);
    }
    find_reason_not_loaded();
    const bool stored = bool_field(outcome_.end, "stored", false);
    const int exit_status = stored ? outcome_.exit_status : kExitNotStored;
    if (configuration_.report && !(stored && is_trivial(outcome_)))
      say_lines(report_lines(outcome_));
    if (stored) {
      end_private_node();
    } else {
      say_lines(unstored_lines(paths_.name, member(outcome_.end, "unstored"),
                               unsigned_field(outcome_.end, "unstored_total")));
    }
    write_report(exit_status);
    return exit_status;
  }

  // The user has no more time. The node goes on storing by itself; here is what it still holds.
  int finish_interrupted() {
    say("ended at once, while data was being stored");
    Json unstored = Json::array();
    uint64_t total = 0;
    try {
      const Json reply = ControlClient(paths_).request({{"command", "status"}});
      const Json& status = member(reply, "status");
      unstored = member(status, "unstored");
      total = unsigned_field(status, "unstored_total");
      say_tiers(status);
    } catch (const Failure& failure) {
      say_failure(failure.what(), failure.remedy());
    }
    outcome_.end = {{"stored", false}, {"unstored", unstored}};
    say_lines(unstored_lines(paths_.name, unstored, total));
    if (launched_)
      say(fmt::format("node {} goes on storing, and ends when it holds nothing more", paths_.name));
    write_report(kExitNotStored);
    return kExitNotStored;
  }

  static void say_tiers(const Json& status) {
    for (const Json& tier : member(status, "tiers")) {
      const uint64_t dirty = unsigned_field(tier, "dirty_bytes");
      if (dirty == 0) continue;
      const std::string path = text_field(tier, "path");
      say(fmt::format("  {} not stored in tier {}{}", format_size(dirty),
                      printable(text_field(tier, "name")),
                      path.empty() ? "" : " (" + printable(path) + ")"));
    }
  }

  int finish_unconfirmed(const Failure& failure) {
    say_failure(failure.what(), failure.remedy());
    say(fmt::format(
        "NOT CONFIRMED: node {} did not say that everything is stored; what it wrote last is "
        "in {}",
        paths_.name, paths_.log_file));
    outcome_.end = {{"stored", false}, {"unstored", Json::array()}};
    write_report(kExitNotStored);
    return kExitNotStored;
  }

  bool says_how_it_went() const { return configuration_.report || report_descriptor_ >= 0; }

  void find_reason_not_loaded() {
    const Json& report = member(outcome_.end, "report");
    if (bool_field(report, "attached", true) || !says_how_it_went()) return;
    const ProgramCheck check = check_loading(program_path_);
    // A program that can be buffered has simply not asked for any managed file.
    if (!check.can_be_buffered)
      outcome_.not_loaded_reason = fmt::format("{} {}", check.path, check.reason);
  }

  void end_private_node() {
    if (!launched_) return;
    try {
      ControlClient(paths_).request({{"command", "shutdown"}, {"drain", true}});
    } catch (const Failure&) {
      // The connection closes when the service ends, as it should.
    }
    if (!wait_for_end(*launched_, kServiceEndSeconds)) {
      say(fmt::format("node {} has not ended after {} s (process {}, log {})", paths_.name,
                      kServiceEndSeconds, launched_->service, paths_.log_file));
    }
    launched_.reset();
  }

  static void say_lines(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    say(text);
  }

  void write_report(int exit_status) const {
    if (report_descriptor_ < 0) return;
    const std::string text =
        report_json(outcome_, exit_status).dump(2, ' ', false, Json::error_handler_t::replace) +
        "\n";
    if (!write_fully(report_descriptor_, text)) {
      say(fmt::format("--report-json {}: {}", options_.report_json, std::strerror(errno)));
    }
  }

  const RunOptions& options_;
  std::string program_path_;
  NodePaths paths_;
  Configuration configuration_;
  std::optional<SignalWatch> signals_;
  std::optional<LaunchedNode> launched_;
  std::optional<ControlClient> control_;
  std::optional<Json> began_;  // the node's answer to run-begin, once it has been read
  std::optional<Failure> begin_failure_;
  Json reservations_ = Json::array();
  ProgramEnvironment environment_;
  std::vector<ScratchMount> scratch_;
  bool node_has_scratch_ = false;  // the running node that is attached to
  RunOutcome outcome_;
  DrainView view_;
  int interrupts_ = 0;
  int report_descriptor_ = -1;
};

}  // namespace

int run_program(const RunOptions& options) { return Run(options).execute(); }

}  // namespace cairn::cli
