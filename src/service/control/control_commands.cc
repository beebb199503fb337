// SPDX-License-Identifier: Apache-2.0
#include "service/control/control_commands.h"

#include <signal.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/size_text.h"
#include "service/capacity/account_book.h"
#include "service/control/explain.h"
#include "service/control/reservation_wait.h"
#include "service/learning/trace_recorder.h"
#include "service/treatment/rule_book.h"
#include "service/treatment/rule_json.h"
#include "service/treatment/scratch_space.h"

namespace cairn::node {
namespace {

std::string text_of(const Json& request, const char* field) {
  const auto found = request.find(field);
  if (found == request.end()) return {};
  if (found->is_number_integer()) return std::to_string(found->get<std::int64_t>());
  return found->is_string() ? found->get<std::string>() : std::string();
}

bool flag_of(const Json& request, const char* field, bool otherwise) {
  const auto found = request.find(field);
  return found != request.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

// The run's weight against others; without one, that of all that say nothing.
std::uint32_t weight_of(const Json& request) {
  const auto weight = request.find("weight");
  return weight != request.end() && weight->is_number_unsigned() ? weight->get<std::uint32_t>()
                                                                 : FairShare::kWeightDefault;
}

Result<std::vector<Reservation>> reservations_of(const Json& request) {
  std::vector<Reservation> reservations;
  const auto list = request.find("reserve");
  if (list == request.end()) return reservations;
  if (!list->is_array()) return Status(StatusCode::kInvalid, "reserve is a list");
  for (const Json& item : *list) {
    const auto bytes = item.find("bytes");
    if (!item.is_object() || bytes == item.end() || !bytes->is_number_unsigned())
      return Status(StatusCode::kInvalid, "reserve lists objects of tier and bytes");
    reservations.push_back(Reservation{text_of(item, "tier"), bytes->get<std::uint64_t>()});
  }
  return reservations;
}

Json done() { return {{"kind", "done"}}; }

void add_outcome(Json& reply, const DrainOutcome& outcome) {
  reply["stored"] = outcome.stored;
  reply["unstored"] = unstored_json(outcome.left);
  reply["unstored_total"] = outcome.left.size();
  reply["seconds"] = outcome.seconds;
  if (outcome.sync_error != 0) reply["sync_errno"] = outcome.sync_error;
}

}  // namespace

void ControlCommands::on_request(ControlPeer& peer, std::uint64_t session, const Json& request) {
  const std::string command = text_of(request, "command");
  if (command == "status") return status(peer);
  if (command == "drain") return drain_all(peer, request);
  if (command == "run-begin") return run_begin(peer, session, request);
  if (command == "run-end") return run_end(peer, session, request);
  if (command == "explain") return explain(peer, request);
  if (command == "config") return config(peer);
  if (command == "shutdown") return shutdown(peer, request);
  if (files_.on_request(peer, command, request)) return;
  if (learning_.on_request(peer, session, command, request)) return;
  peer.fail("unknown command \"" + command + "\"",
            "the node may run another version of Cairn than this command");
}

void ControlCommands::status(ControlPeer& peer) {
  Json reply = done();
  reply["status"] = status_.status();
  peer.send(reply);
}

DrainOutcome ControlCommands::drain_for(ControlPeer& peer, const Json& request) {
  DrainOptions options;
  const auto timeout = request.find("timeout_seconds");
  if (timeout != request.end() && timeout->is_number())
    options.timeout_seconds = timeout->get<double>();
  options.progress = [&peer](const DrainProgress& progress) {
    return peer.send({{"kind", "progress"},
                      {"remaining_bytes", progress.remaining_bytes},
                      {"remaining_files", progress.remaining_files},
                      {"rate_bytes_per_second", progress.rate_bytes_per_second},
                      {"file", progress.file}}) &&
           !peer.is_gone();
  };
  return drain(*context_.memory, *context_.files, *context_.flusher, options);
}

void ControlCommands::drain_all(ControlPeer& peer, const Json& request) {
  const DrainOutcome outcome = drain_for(peer, request);
  Json reply = done();
  add_outcome(reply, outcome);
  peer.send(reply);
}

void ControlCommands::run_begin(ControlPeer& peer, std::uint64_t session, const Json& request) {
  Run run;
  run.id = text_of(request, "run");
  run.directory = text_of(request, "directory");
  run.began_ns = monotonic_ns();
  if (const auto words = request.find("command_line");
      words != request.end() && words->is_array()) {
    for (const Json& word : *words) {
      if (word.is_string()) run.command_line.push_back(word.get<std::string>());
    }
  }
  for (const CounterShard& shard : context_.memory->slot(ClientTable::kServiceSlot).shards) {
    run.flushed_bytes_before += shard.get(Counter::kFlushedBytes);
  }
  const std::string id = run.id;
  const std::uint32_t number = run.number();
  if (id.empty()) return peer.fail("run-begin without a run", "");
  if (!context_.runs->begin(std::move(run)))
    return peer.fail("a run " + id + " is under way already", "");
  Json reply = done();
  const auto refuse = [&](const Status& status, const char* remedy) {
    context_.runs->end(id);
    forget_run(number);
    peer.fail(status.message(), remedy);
  };
  constexpr const char* kAskForLess =
      "ask for less, wait until other runs have ended, or give the node larger tiers; `cairn "
      "status` says who has what";
  if (const Status status = open_account(number, request); !status)
    return refuse(status, kAskForLess);
  if (const Status status = take_settings(number, request, &reply); !status) {
    return refuse(status,
                  "`cairn config show --node NAME` and `cairn status` say what the node has");
  }
  if (const Status status = wait_for_reservations(context_, peer, number); !status)
    return refuse(status, kAskForLess);
  {
    const std::lock_guard lock(mutex_);
    run_of_session_[session] = id;
  }
  peer.send(reply);
}

Status ControlCommands::open_account(std::uint32_t run, const Json& request) const {
  const auto reservations = reservations_of(request);
  if (!reservations) return reservations.status();
  return context_.accounts->begin_run(run, weight_of(request), *reservations);
}

// The run's own settings and rules, beside those of the node.
Status ControlCommands::take_settings(std::uint32_t run, const Json& request, Json* reply) const {
  if (const auto settings = request.find("settings"); settings != request.end()) {
    auto rule = rule_from_json(*settings);
    if (!rule) return rule.status();
    const auto handling = context_.rules->handling_of(
        *rule, ObjectHandling::from_bits(context_.memory->header().default_handling.load()));
    if (!handling) return handling.status();
    (*reply)["handling"] = handling->bits();
  }
  if (request.contains("weight")) context_.flusher->set_weight(run, weight_of(request));
  std::vector<FileRule> rules;
  if (const auto list = request.find("rules"); list != request.end() && list->is_array()) {
    for (const Json& object : *list) {
      auto rule = rule_from_json(object);
      if (!rule) return rule.status();
      rules.push_back(std::move(rule.value()));
    }
  }
  std::vector<FileRule> scratch_rules;
  if (const auto list = request.find("scratch"); list != request.end() && list->is_array()) {
    for (const Json& directory : *list) {
      if (!directory.is_string()) return Status(StatusCode::kInvalid, "scratch names directories");
      const auto place = context_.scratch->add(run, directory.get<std::string>());
      if (!place) return place.status();
      scratch_rules.push_back(scratch_rule(directory.get<std::string>()));
    }
  }
  for (const ScratchSpace::Place& place : context_.scratch->places_of(run))
    (*reply)["scratch"].push_back({{"source", place.source}, {"target", place.target}});
  rules.insert(rules.begin(), scratch_rules.begin(), scratch_rules.end());
  return context_.rules->begin_run(run, rules);
}

void ControlCommands::settle_deaths(std::uint32_t run) const {
  constexpr int kTries = 5000;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    bool waiting = false;
    for (const ClientInfo& client : context_.clients->active()) {
      if (client.run == run && ::kill(client.pid, 0) != 0 && errno == ESRCH) waiting = true;
    }
    if (!waiting) break;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  context_.reaper->wait_until_idle(2000);
}

void ControlCommands::run_end(ControlPeer& peer, std::uint64_t session, const Json& request) {
  const std::string id = text_of(request, "run");
  const std::optional<Run> run = context_.runs->find(id);
  if (!run) return peer.fail("no run " + id + " is under way", "");
  settle_deaths(run->number());
  const DrainOutcome outcome = drain_for(peer, request);
  Json reply = done();
  add_outcome(reply, outcome);
  reply["report"] = run_report(context_, *run, outcome.seconds);
  {
    const std::lock_guard lock(mutex_);
    run_of_session_.erase(session);
  }
  context_.runs->end(id);
  forget_run(run->number());
  peer.send(reply);
}

void ControlCommands::forget_run(std::uint32_t run) const {
  context_.rules->end_run(run);
  context_.scratch->end_run(run);
  context_.flusher->end_run(run);
  context_.accounts->end_run(run);
  context_.clients->forget_run(run);
  context_.stop->note_run_ended();
}

void ControlCommands::explain(ControlPeer& peer, const Json& request) {
  const auto device = request.find("device");
  const auto inode = request.find("inode");
  if (device == request.end() || inode == request.end() || !device->is_number_integer() ||
      !inode->is_number_integer()) {
    return peer.fail("explain needs device and inode", "");
  }
  ExplainRequest file;
  file.device = device->get<std::uint64_t>();
  file.inode = inode->get<std::uint64_t>();
  file.path = text_of(request, "path");
  if (const auto size = request.find("size"); size != request.end() && size->is_number_unsigned())
    file.size = size->get<std::uint64_t>();
  peer.send(explain_file(context_, file));
}

void ControlCommands::config(ControlPeer& peer) {
  Json options = Json::array();
  for (const ResolvedOption& option : context_.config->resolved) {
    options.push_back({{"name", option.name}, {"value", option.value}, {"source", option.source}});
  }
  Json reply = done();
  reply["options"] = options;
  peer.send(reply);
}

void ControlCommands::shutdown(ControlPeer& peer, const Json& request) {
  Json reply = done();
  const bool discard = flag_of(request, "discard", false);
  if (flag_of(request, "drain", true) && !discard) {
    const DrainOutcome outcome = drain_for(peer, request);
    add_outcome(reply, outcome);
    if (!outcome.stored) {
      // The only copy is here: the node stays until somebody says that it may be lost.
      reply["stopped"] = false;
      peer.send(reply);
      return;
    }
  } else {
    const DirtyView left = view_dirty(*context_.memory, *context_.files, 100);
    if (!left.files.empty() && !discard) {
      return peer.fail(std::to_string(left.files.size()) + " files are not stored yet",
                       "drain first, or discard them");
    }
    reply["stored"] = left.files.empty();
    reply["unstored"] = unstored_json(left.files);
  }
  reply["stopped"] = true;
  // No new dirty data from here on; what a client still has in hand goes to the backing store.
  context_.memory->header().detached.store(1, std::memory_order_seq_cst);
  peer.send(reply);
  context_.stop->request_stop();
}

void ControlCommands::on_close(std::uint64_t session) {
  context_.recorder->on_close(session);
  std::string id;
  {
    const std::lock_guard lock(mutex_);
    const auto found = run_of_session_.find(session);
    if (found == run_of_session_.end()) return;
    id = found->second;
    run_of_session_.erase(found);
  }
  const std::optional<Run> run = context_.runs->end(id);
  if (!run) return;
  spdlog::warn("the launcher of run {} went away without ending it", id);
  forget_run(run->number());
  if (!context_.config->private_node) return;
  // Nobody is left who would end a private node.
  context_.stop->request_stop_when_unused();
}

}  // namespace cairn::node
