// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/run_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/size_text.h"
#include "cli/advice/advice_history.h"
#include "cli/commands/array_hint_option.h"
#include "cli/commands/node_launcher.h"
#include "cli/configuration/config_file.h"
#include "cli/configuration/configuration.h"
#include "cli/configuration/setting_flags.h"
#include "cli/launch/program_search.h"
#include "cli/launch/signal_watch.h"
#include "cli/node/control_client.h"
#include "cli/node/json_fields.h"
#include "cli/node/run_directory.h"
#include "cli/report/page.h"
#include "cli/report/report_file.h"
#include "cli/report/run_records.h"
#include "cli/run/node_text.h"
#include "cli/run/program_run.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/terminal/paths.h"
#include "cli/terminal/patience.h"
#include "service/treatment/rule_json.h"

namespace cairn::cli {
namespace {

// The service has stored everything before it ends, but may have gigabytes of memory to give back.
constexpr double kServiceEndSeconds = 30;
// How long a process that was killed may still be seen.
constexpr double kDeathSeconds = 1;

// One run up to its beginning: the checks, the node, and what it asks of the node. The steps are in
// the order in which they happen.
class Run {
 public:
  // `signals`: the watch that the caller has; null: the run makes one.
  Run(const RunOptions& options, SignalWatch* signals) : options_(options), signals_(signals) {}

  int execute() {
    const FoundProgram program = find_program(options_.command_line.front());
    if (program.path.empty()) throw Failure(program.message, "", program.exit_status);
    program_path_ = program.path;
    preload_library_ = preload_library_path();
    if (options_.arrays == "on") require_array_connector();
    check_page();
    parse_reservations();
    array_hints_ = take_array_hints(options_.array);
    choose_node();
    open_report_file();
    const ProgramRunOptions run_options = program_run();
    ProgramRun run(run_options, *signals_);
    try {
      run.begin();
    } catch (...) {
      fail_if_node_is_gone();
      (void)end_private_node();
      throw;
    }
    return run.execute();
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
      watch_signals();
      CommandLineSettings settings = options_.settings;
      settings.flags["node.name"] = {private_node_name()};
      configuration_ = resolve_configuration(settings);
      for (const std::string& warning : configuration_.warnings) say("warning: " + warning);
      launched_ = launch_node(configuration_);
      paths_ = launched_->paths;
      if (options_.verbose) say(fmt::format("started node {} ({})", paths_.name, paths_.directory));
    }
    watch_signals();
  }

  void watch_signals() {
    if (signals_ == nullptr) signals_ = &own_signals_.emplace();
  }

  void refuse_node_options() const {
    const std::string_view flag = node_flag(options_.settings);
    if (flag.empty()) return;
    throw Failure(
        fmt::format("{} cannot change a running node", flag),
        fmt::format("leave it out, or start another node: `cairn up --name NAME {} ...`", flag));
  }

  void resolve_for_attached_node() {
    configuration_ = resolve_configuration(options_.settings, ConfigurationScope::kAttachedRun);
    const NodeText text = read_node_text(paths_);
    node_has_scratch_ = text.has_scratch;
    NodeConfig& mine = configuration_.node;
    if (!mine.buffer_directories.empty() || !options_.settings.config_file.empty()) return;
    if (!text.has_filter) return;
    const ConfigFile file = parse_config_text(text.text, paths_.config_file);
    for (const Setting& setting : file.settings) {
      for (const SettingItem& item : setting.items) {
        if (setting.option->name == "buffer.directories")
          mine.buffer_directories.push_back(item.text);
        if (setting.option->name == "buffer.exclude") mine.buffer_exclude.push_back(item.text);
      }
    }
  }

  // Opened before the program runs: a place that cannot be written is a mistake to hear of now.
  void open_report_file() {
    if (options_.report_json.empty()) return;
    report_descriptor_ =
        ::open(options_.report_json.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (report_descriptor_ >= 0) return;
    const int error = errno;
    (void)end_private_node();
    throw Failure(fmt::format("--report-json {}: {}", options_.report_json, std::strerror(error)),
                  "name a file that you may write");
  }

  // Before anything is started, as well.
  void check_page() {
    if (options_.report.empty()) return;
    check_report_place("--report", options_.report, options_.force);
    page_path_ = absolute_path(options_.report);
    if (page_path_ == absolute_path(options_.report_json))
      throw Failure("--report and --report-json name the same file", "name two files");
  }

  // Where the node records the run. Without a directory that outlives the node, in the node's,
  // which goes with it.
  std::string record_path() {
    const std::string run = fmt::format("{}", ::getpid());
    try {
      const RunRecords records;
      records.make_room();
      is_kept_ = true;
      return records.path_of(run);
    } catch (const Failure& failure) {
      say(fmt::format("warning: the run is not kept for `cairn report`: {}", failure.what()));
    }
    const std::string directory = records_directory(paths_);
    (void)::mkdir(directory.c_str(), 0700);
    return fmt::format("{}/{}.json", directory, run);
  }

  // A failure is said and changes nothing else: the program has run, and its data is stored.
  static bool try_to_write(const std::string& option, const std::string& path,
                           const std::string& text, const std::string& remedy) {
    try {
      write_report_file(option, path, text, remedy);
      return true;
    } catch (const Failure& failure) {
      say_failure(failure.what(), failure.remedy());
      return false;
    }
  }

  // Returns: whether `cairn report` finds the run as it was.
  bool keep_record(const Json& document) const {
    if (!is_kept_) {
      (void)::unlink(record_path_.c_str());
      return false;
    }
    return try_to_write(
        "the run is not kept for `cairn report` as it ended:", record_path_,
        document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n",
        "make room there, or set XDG_STATE_HOME to a directory with room that you may write in");
  }

  void make_page(Json document) const {
    try {
      if (!document.contains("timeline")) {
        const Json recorded = read_record(record_path_);
        if (recorded.contains("timeline")) document["timeline"] = recorded["timeline"];
      }
    } catch (const Failure& failure) {
      say(fmt::format("--report: the node has recorded nothing: {}", failure.what()));
    }
    const std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
    const bool is_known = keep_record(document);
    (void)try_to_write("--report", page_path_, report_page(Json::parse(text)),
                       is_known
                           ? "the run is kept: `cairn report -o FILE` writes its page elsewhere"
                           : "make room there; there is no page of this run");
  }

  // A run on a node of its own is kept although nobody has asked for its report. A home directory
  // that does not answer is met neither at its beginning nor for long at its end.
  void keep_lightly(ProgramRunOptions* run) {
    constexpr double kSecondsMin = 1;
    try {
      record_path_ = RunRecords().path_of(fmt::format("{}", ::getpid()));
    } catch (const Failure&) {
      return;
    }
    is_kept_ = true;
    run->wishes["record"] = record_path_;
    run->wishes["sampling"] = "light";
    run->page_seconds_min = kSecondsMin;
    run->make_page = [this](const Json& document) {
      if (!keep_in_time(record_path_, document))
        say(fmt::format("warning: the run is not kept for `cairn report`, as {} does not answer",
                        RunRecords().directory()));
    };
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

  // What the node hears beside what it hears of every run.
  Json wishes() const {
    Json request = Json::object();
    // A private node has the run's settings as its own.
    const std::optional<FileRule> settings = launched_ ? std::nullopt : own_settings();
    if (settings) request["settings"] = node::rule_to_json(*settings);
    if (!launched_) {
      for (const FileRule& rule : configuration_.node.rules)
        request["rules"].push_back(node::rule_to_json(rule));
    }
    if (options_.weight != 0) request["weight"] = options_.weight;
    if (!reservations_.empty()) request["reserve"] = reservations_;
    if (!array_hints_.empty()) request["arrays"] = array_hints_;
    for (const std::string& directory : configuration_.run_scratch)
      request["scratch"].push_back(directory);
    return request;
  }

  ProgramRunOptions program_run() {
    ProgramRunOptions run;
    run.node = paths_;
    run.program_path = program_path_;
    run.command_line = options_.command_line;
    run.preload_library = preload_library_;
    run.buffer_directories = configuration_.node.buffer_directories;
    run.exclude = configuration_.node.buffer_exclude;
    run.allow_io_uring = options_.allow_io_uring;
    run.arrays = options_.arrays;
    run.report = configuration_.report;
    run.grace_seconds = configuration_.grace_seconds;
    run.report_json = options_.report_json;
    run.report_descriptor = report_descriptor_;
    run.foretold = foretold();
    run.compare = keep_comparison;
    run.wishes = wishes();
    if (!page_path_.empty()) {
      record_path_ = record_path();
      run.wishes["record"] = record_path_;
      run.make_page = [this](Json document) { make_page(std::move(document)); };
    }
    if (page_path_.empty() && launched_ && configuration_.report) keep_lightly(&run);
    run.begins_first = run.wishes.contains("settings") || run.wishes.contains("rules") ||
                       run.wishes.contains("reserve") || run.wishes.contains("scratch") ||
                       run.wishes.contains("arrays") || node_has_scratch_ ||
                       !configuration_.node.scratch_directories.empty();
    if (launched_) run.end_node = [this] { return end_private_node(); };
    return run;
  }

  // What `cairn advise` foretold of runs with this configuration.
  std::optional<Foretold> foretold() const {
    if (configuration_.advised_io_ms == 0) return std::nullopt;
    const bool is_of_run = configuration_.node.mode == BufferingMode::kBypass;
    const uint64_t besides = is_of_run ? configuration_.advised_compute_ms : 0;
    const auto seconds = [besides](uint64_t io_ms) {
      return static_cast<double>(io_ms + besides) / 1e3;
    };
    return Foretold{.seconds = seconds(configuration_.advised_io_ms),
                    .low = seconds(configuration_.advised_io_min_ms),
                    .high = seconds(configuration_.advised_io_max_ms),
                    .is_of_run = is_of_run};
  }

  // For `cairn advise --history`, which is not worth the failure of a run.
  static void keep_comparison(const RunOutcome& outcome) {
    const Json& report = member(outcome.end, "report");
    const Foretold& foretold = *outcome.foretold;
    const ForetoldRun run{
        .when = "",
        .program = base_name(outcome.command_line.front()),
        .expected = foretold.seconds,
        .low = foretold.low,
        .high = foretold.high,
        .measured = foretold.is_of_run ? outcome.wall_seconds : number_field(report, "io_seconds"),
        .is_of_run = foretold.is_of_run,
        .exit_status = outcome.exit_status};
    const Done done = do_in_time([&run] {
      try {
        AdviceHistory().add(run);
      } catch (const Failure&) {
        return false;
      }
      return true;
    });
    if (done == Done::kWell) return;
    say(fmt::format(
        "warning: what was foretold of the run is not kept, as the file of `cairn advise "
        "--history` {}",
        done == Done::kBadly ? "cannot be written" : "does not answer"));
  }

  // What this run asks for, over what its node does; nothing when it asks for nothing.
  std::optional<FileRule> own_settings() const {
    FileRule rule;
    rule.pattern = "*";
    rule.mode = configuration_.run_mode;
    rule.trigger = configuration_.run_trigger;
    rule.durability = configuration_.run_durability;
    rule.policy = configuration_.run_policy;
    if (!rule.mode && !rule.trigger && !rule.durability && !rule.policy) return std::nullopt;
    return rule;
  }

  // A node of this run alone cannot be started again by hand, which others advise.
  void fail_if_node_is_gone() {
    if (!launched_ || !wait_for_end(*launched_, kDeathSeconds).has_ended) return;
    launched_.reset();
    throw Failure(
        fmt::format("node {} of this run died before the program started", paths_.name),
        "something has killed its processes (`dmesg` names what the kernel killed for want of "
        "memory); run it again");
  }

  // Returns: whether the node's end was as good as its word that everything is stored.
  bool end_private_node() {
    if (!launched_) return true;
    try {
      ControlClient(paths_).request({{"command", "shutdown"}, {"drain", true}});
    } catch (const Failure&) {
      // The connection closes when the service ends, as it should.
    }
    const NodeEnd end = wait_for_end(*launched_, kServiceEndSeconds);
    if (!end.has_ended) {
      say(fmt::format("node {} has not ended after {} s (process {}, log {})", paths_.name,
                      kServiceEndSeconds, launched_->service, paths_.log_file));
    }
    const bool is_unstored = end.exit_status == kExitNotStored;
    if (is_unstored) say("NOT STORED for good: " + printable(end.last_error));
    launched_.reset();
    return !is_unstored;
  }

  const RunOptions& options_;
  std::string program_path_;
  std::string preload_library_;
  NodePaths paths_;
  Configuration configuration_;
  SignalWatch* signals_;
  std::optional<SignalWatch> own_signals_;
  std::optional<LaunchedNode> launched_;
  Json reservations_ = Json::array();
  std::vector<std::string> array_hints_;
  bool node_has_scratch_ = false;  // the running node that is attached to
  int report_descriptor_ = -1;
  std::string page_path_;    // empty: no page is wanted
  std::string record_path_;  // what the node and keep_record() write
  bool is_kept_ = false;     // the record outlives the node
};

}  // namespace

int run_program(const RunOptions& options) { return Run(options, nullptr).execute(); }

int run_program(const RunOptions& options, SignalWatch& signals) {
  return Run(options, &signals).execute();
}

}  // namespace cairn::cli
