// SPDX-License-Identifier: Apache-2.0
#include "cli/run/program_run.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>

#include "base/clock.h"
#include "base/size_text.h"
#include "cli/launch/program_check.h"
#include "cli/node/control_socket.h"
#include "cli/node/json_fields.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/terminal/paths.h"

namespace cairn::cli {
namespace {

void say_tiers(const Json& status) {
  for (const Json& tier : member(status, "tiers")) {
    const uint64_t dirty = unsigned_field(tier, "dirty_bytes");
    if (dirty == 0) continue;
    const std::string path = text_field(tier, "path");
    say(fmt::format("  {} not stored in tier {}{}", format_size(dirty),
                    printable(text_field(tier, "name")),
                    path.empty() ? "" : " (" + printable(path) + ")"));
  }
}

// The program reads its arrays as without Cairn.
void say_connector_problem() {
  const ArrayConnector connector = find_array_connector();
  if (connector.is_there && !connector.problem.empty())
    say(fmt::format("warning: {} {}: HDF5 reads arrays itself", printable(connector.path),
                    connector.problem));
}

void say_goes_on(const std::string& node) {
  say(fmt::format("node {} goes on storing, and ends when it holds nothing more", node));
}

void say_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  say(text);
}

}  // namespace

void ProgramRun::begin() {
  outcome_.node = options_.node.name;
  outcome_.foretold = options_.foretold;
  outcome_.private_node = static_cast<bool>(options_.end_node);
  outcome_.run_id = fmt::format("{}", ::getpid());
  outcome_.command_line = options_.command_line;
  control_.emplace(options_.node);
  environment_.preload_library = options_.preload_library;
  environment_.client_socket = options_.node.client_socket;
  environment_.run_id = outcome_.run_id;
  environment_.allow_io_uring = options_.allow_io_uring;
  environment_.arrays = options_.arrays;
  environment_.buffer_directories = options_.buffer_directories;
  environment_.exclude = options_.exclude;
  if (environment_.buffer_directories.empty())
    environment_.buffer_directories.push_back(working_directory());
  if (options_.arrays != "off") say_connector_problem();
  send_begin();
}

void ProgramRun::send_begin() {
  Json request = options_.wishes;
  request["command"] = "run-begin";
  request["run"] = outcome_.run_id;
  request["command_line"] = options_.command_line;
  request["directory"] = working_directory();
  control_->send(request);
  if (!options_.begins_first) return;
  // The rules are in force before the program starts. Other runs read the answer while it runs:
  // nothing that it could say depends on the wait.
  began_ = control_->receive();
  if (request.contains("settings"))
    environment_.handling = fmt::format("{:x}", unsigned_field(*began_, "handling"));
  for (const Json& place : member(*began_, "scratch")) {
    scratch_.push_back(ScratchMount{text_field(place, "source"), text_field(place, "target")});
    environment_.buffer_directories.push_back(scratch_.back().target);
  }
}

int ProgramRun::execute() {
  if (const int refused = start_and_wait(); refused != 0) return refused;
  return finish();
}

// Returns: 0 when the program ran, else the status with which this command ends.
int ProgramRun::start_and_wait() {
  ProgramStart start;
  start.path = options_.program_path;
  start.arguments = options_.command_line;
  start.environment = program_environment(environment_);
  start.signal_mask = signals_.original_mask();
  start.restore_pipe_signal = signals_.pipe_signal_was_default();
  start.allow_io_uring = options_.allow_io_uring;
  start.scratch = scratch_;
  const double started = monotonic_seconds();
  control_->watch(signals_.descriptor());
  const StartedProgram program = start_program(start);
  if (program.process < 0) {
    (void)end_node();
    say(fmt::format("{}: {}: {}", options_.command_line.front(), program.failed_step,
                    std::strerror(program.error)));
    const bool missing = program.error == ENOENT && program.failed_step == std::string("exec");
    return missing ? kExitNotFound : kExitNotExecutable;
  }
  hear_of_begin();
  const int status = wait_for_program(program.process);
  outcome_.wall_seconds = monotonic_seconds() - started;
  begin_grace(true);
  outcome_.killed_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  outcome_.exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return 0;
}

// Reads the answer to run-begin while the program runs, so that its end waits for run-end alone.
// Where a signal comes first, finish() reads the answer.
void ProgramRun::hear_of_begin() {
  if (began_) return;
  try {
    const Json reply = control_->receive([](const Json& event) { return !event.is_null(); });
    if (!reply.is_null()) began_ = reply;
  } catch (const Failure& failure) {
    begin_failure_ = failure;
  }
}

int ProgramRun::wait_for_program(pid_t process) {
  while (true) {
    int status = 0;
    const pid_t ended = ::waitpid(process, &status, WNOHANG);
    if (ended == process) return status;
    const ReceivedSignal signal = signals_.wait();
    if (signal.tells_of_wait && !has_told_of_wait_) {
      has_told_of_wait_ = true;
      say(fmt::format("a program waits for the service of node {}, which may be starting again",
                      options_.node.name));
    }
    if (signal.number == SIGCHLD || signal.number == SIGWINCH) continue;
    if (signal.number == SIGINT || signal.number == SIGTERM) {
      ++interrupts_;
      begin_grace(false);
    }
    if (!signal.from_terminal) ::kill(process, signal.number);
  }
}

// The time runs from here on, unless it does already. A batch system kills everything when it is
// over, so the node stores dirty data while the program still ends.
void ProgramRun::begin_grace(bool has_ended) {
  if (has_ended) early_drain_.reset();
  if (options_.grace_seconds == 0 || grace_began_ != 0) return;
  grace_began_ = monotonic_seconds();
  if (has_ended || !outcome_.private_node) return;
  try {
    early_drain_.emplace(options_.node);
    early_drain_->send(
        {{"command", "drain"}, {"timeout_seconds", options_.grace_seconds}, {"keep", true}});
  } catch (const Failure&) {
    early_drain_.reset();  // run-end tries again, and says why not
  }
}

Json ProgramRun::end_request() const {
  Json request = {{"command", "run-end"}, {"run", outcome_.run_id}};
  if (grace_began_ == 0) return request;
  request["timeout_seconds"] =
      std::max(0.0, grace_began_ + options_.grace_seconds - monotonic_seconds());
  // A node of many runs outlives the job.
  request["keep"] = outcome_.private_node;
  return request;
}

// True when the user has asked a second time to end. The first request was for the program.
bool ProgramRun::interrupted_again() {
  bool again = false;
  while (const auto signal = signals_.next()) {
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

int ProgramRun::finish() {
  try {
    if (begin_failure_) throw Failure(*begin_failure_);
    const auto on_event = [this](const Json& progress) {
      if (progress.is_null()) return !interrupted_again();
      view_.update(DrainProgress::from_json(progress));
      return true;
    };
    // The answer to run-begin comes first; null: the user would not wait even for that.
    Json reply = began_ ? *began_ : control_->receive(on_event);
    if (!reply.is_null()) reply = control_->request(end_request(), on_event);
    view_.clear();
    if (reply.is_null()) return finish_interrupted();
    outcome_.end = std::move(reply);
  } catch (const Failure& failure) {
    view_.clear();
    return finish_unconfirmed(failure);
  }
  find_reason_not_loaded();
  find_old_hdf5();
  return finish_stored_or_not(bool_field(outcome_.end, "stored", false));
}

int ProgramRun::finish_stored_or_not(bool stored) {
  int exit_status = stored ? outcome_.exit_status : kExitNotStored;
  take_history();
  if (options_.foretold && options_.compare) options_.compare(outcome_);
  if (options_.report && !(stored && is_trivial(outcome_))) say_lines(report_lines(outcome_));
  if (stored) {
    if (!end_node()) exit_status = kExitNotStored;
  } else {
    say_lines(unstored_lines(options_.node.name, member(outcome_.end, "unstored"),
                             unsigned_field(outcome_.end, "unstored_total")));
    if (grace_began_ != 0 && outcome_.private_node) say_goes_on(options_.node.name);
    const auto kept = kept_lines(options_.node.name, member(outcome_.end, "kept"));
    if (!kept.empty()) say_lines(kept);
  }
  write_report(exit_status);
  return exit_status;
}

// The user has no more time. The node goes on storing by itself; here is what it still holds.
int ProgramRun::finish_interrupted() {
  say("ended at once, while data was being stored");
  Json unstored = Json::array();
  uint64_t total = 0;
  try {
    const Json reply = ControlClient(options_.node).request({{"command", "status"}});
    const Json& status = member(reply, "status");
    unstored = member(status, "unstored");
    total = unsigned_field(status, "unstored_total");
    say_tiers(status);
  } catch (const Failure& failure) {
    say_failure(failure.what(), failure.remedy());
  }
  take_history();
  outcome_.end = {{"stored", false}, {"unstored", unstored}};
  say_lines(unstored_lines(options_.node.name, unstored, total));
  if (outcome_.private_node) say_goes_on(options_.node.name);
  write_report(kExitNotStored);
  return kExitNotStored;
}

// The node has ended by itself, in the middle of the run.
int ProgramRun::finish_rescued(const RescueNews& news) {
  const bool is_plain = news.stored && news.old_log.empty();
  if (options_.report || !is_plain) say_lines(rescue_lines(options_.node.name, news));
  outcome_.end = {{"stored", news.stored}, {"unstored", Json::array()}};
  if (news.stored) (void)end_node();
  const int exit_status = news.stored ? outcome_.exit_status : kExitNotStored;
  write_report(exit_status);
  return exit_status;
}

int ProgramRun::finish_unconfirmed(const Failure& failure) {
  if (const auto news = read_rescue_news(options_.node)) return finish_rescued(*news);
  say_failure(failure.what(), failure.remedy());
  say(fmt::format(
      "NOT CONFIRMED: node {} did not say that everything is stored; what it wrote last is "
      "in {}",
      options_.node.name, options_.node.log_file));
  const std::string durable = durable_line(options_.node);
  if (!durable.empty() && !node_answers(options_.node.control_socket)) say(durable);
  outcome_.end = {{"stored", false}, {"unstored", Json::array()}};
  write_report(kExitNotStored);
  return kExitNotStored;
}

void ProgramRun::find_reason_not_loaded() {
  const Json& report = member(outcome_.end, "report");
  const bool says_how_it_went = options_.report || options_.report_descriptor >= 0;
  if (bool_field(report, "attached", true) || !says_how_it_went) return;
  const ProgramCheck check = check_loading(options_.program_path);
  // A program that can be buffered has simply not asked for any managed file.
  if (!check.can_be_buffered)
    outcome_.not_loaded_reason = fmt::format("{} {}", check.path, check.reason);
}

// Nobody tells the node of datasets that such an HDF5 reads.
void ProgramRun::find_old_hdf5() {
  const Json& report = member(outcome_.end, "report");
  const bool says_how_it_went = options_.report || options_.report_descriptor >= 0;
  const bool has_io =
      unsigned_field(report, "read_bytes") > 0 || unsigned_field(report, "written_bytes") > 0;
  if (options_.arrays == "off" || !says_how_it_went || !has_io) return;
  if (!member(member(report, "arrays"), "datasets").empty()) return;
  outcome_.old_hdf5 = old_hdf5_of(options_.program_path);
}

bool ProgramRun::end_node() const { return !options_.end_node || options_.end_node(); }

bool ProgramRun::wants_page() const {
  return options_.make_page && outcome_.wall_seconds >= options_.page_seconds_min;
}

// While the node is there. A report is not worth the failure of a run.
void ProgramRun::take_history() {
  if (!wants_page()) return;
  try {
    ControlClient control(options_.node);
    const Json answer = control.request({{"command", "status"}});
    const Json& status = member(answer, "status");
    for (const char* field : {"durability", "errors", "replacement", "restarts", "runs", "tiers"})
      if (status.contains(field)) history_["status"][field] = status[field];
    // Last: a service that was started again does not know it.
    const Json reply = control.request({{"command", "timeline"}, {"run", outcome_.run_id}});
    history_["timeline"] = member(reply, "timeline");
  } catch (const Failure& failure) {
    history_["timeline_note"] = failure.what();
  }
}

void ProgramRun::write_report(int exit_status) const {
  if (options_.report_descriptor < 0 && !wants_page()) return;
  Json report = report_json(outcome_, exit_status);
  if (wants_page()) {
    Json page = report;
    page.update(history_);
    page["schema"] = "cairn-run-1";
    page["ended"] = true;
    options_.make_page(page);
    if (options_.page_seconds_min == 0) report = std::move(page);
  }
  if (options_.report_descriptor < 0) return;
  const std::string text = report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (!write_fully(options_.report_descriptor, text)) {
    say(fmt::format("--report-json {}: {}", options_.report_json, std::strerror(errno)));
  }
}

}  // namespace cairn::cli
