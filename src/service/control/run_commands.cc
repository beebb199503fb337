// SPDX-License-Identifier: Apache-2.0
#include "service/control/run_commands.h"

#include <errno.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "service/control/array_commands.h"
#include "service/control/request_fields.h"
#include "service/control/reservation_wait.h"
#include "service/process/log.h"
#include "service/process/log_file.h"
#include "service/treatment/rule_json.h"

namespace cairn::node {
namespace {

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

}  // namespace

bool RunCommands::on_request(ControlPeer& peer, std::uint64_t session, const std::string& command,
                             const Json& request) {
  const bool is_of_runs = command == "run-begin" || command == "run-end";
  if (is_of_runs && repeats_answer(peer, session)) return true;
  if (command == "run-begin") {
    begin(peer, session, request);
  } else if (command == "run-end") {
    end(peer, session, request);
  } else if (command == "timeline") {
    timeline(peer, request);
  } else {
    return false;
  }
  return true;
}

// The service before this one has done the same request, and died before its answer was read.
bool RunCommands::repeats_answer(ControlPeer& peer, std::uint64_t session) const {
  const auto answer = with_.kept.sessions().answer_to(session, peer.request());
  if (answer) peer.send(*answer);
  return answer.has_value();
}

Run RunCommands::run_of(const Json& request) const {
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
  for (const CounterShard& shard : with_.memory.slot(ClientTable::kServiceSlot).shards) {
    run.flushed_bytes_before += shard.get(Counter::kFlushedBytes);
  }
  return run;
}

void RunCommands::begin(ControlPeer& peer, std::uint64_t session, const Json& request) {
  const Run run = run_of(request);
  if (run.id.empty()) return peer.fail("run-begin without a run", "");
  if (!with_.runs.begin(run)) return peer.fail("a run " + run.id + " is under way already", "");
  Json reply = {{"kind", "done"}};
  const auto refuse = [&](const Status& status, const char* remedy) {
    with_.runs.end(run.id);
    forget(run.number());
    peer.fail(status.message(), remedy);
  };
  constexpr const char* kAskForLess =
      "ask for less, wait until other runs have ended, or give the node larger tiers; `cairn "
      "status` says who has what";
  if (const Status status = open_account(run.number(), request); !status)
    return refuse(status, kAskForLess);
  if (const Status status = take_settings(run.number(), request, &reply); !status) {
    return refuse(status,
                  "`cairn config show --node NAME` and `cairn status` say what the node has");
  }
  if (const Status status = wait_for_reservations(with_.memory, with_.accounts, peer, run.number());
      !status)
    return refuse(status, kAskForLess);
  begin_samples(run, request);
  note_begun(session, run, {peer.request(), reply});
  peer.send(reply);
}

void RunCommands::begin_samples(const Run& run, const Json& request) const {
  const std::string record = text_of(request, "record");
  if (with_.sampler != nullptr) with_.sampler->look_at_store();
  if (with_.sampler == nullptr || record.empty() || record.front() != '/') return;
  const bool is_light = text_of(request, "sampling") == "light";
  with_.sampler->begin(run, record, is_light ? Sampling::kLight : Sampling::kFull);
}

void RunCommands::timeline(ControlPeer& peer, const Json& request) const {
  const std::string id = text_of(request, "run");
  auto known = with_.sampler == nullptr ? std::nullopt : with_.sampler->timeline(id);
  if (!known)
    return peer.fail("run " + id +
                         " is not sampled: it has not asked for it, or the service was "
                         "started again since",
                     "start it with cairn run --report FILE");
  peer.send({{"kind", "done"}, {"timeline", std::move(*known)}});
}

// From here on a successor has the run too.
void RunCommands::note_begun(std::uint64_t session, const Run& run,
                             const RunSessions::Answer& answer) const {
  const std::uint32_t weight = with_.flusher.share_of(run.number()).weight;
  with_.kept.sessions().begin(session, {run, weight}, answer);
  with_.kept.save();
}

Status RunCommands::open_account(std::uint32_t run, const Json& request) const {
  const auto reservations = reservations_of(request);
  if (!reservations) return reservations.status();
  return with_.accounts.begin_run(run, weight_of(request), *reservations);
}

Status RunCommands::take_settings(std::uint32_t run, const Json& request, Json* reply) const {
  if (const auto settings = request.find("settings"); settings != request.end()) {
    auto rule = rule_from_json(*settings);
    if (!rule) return rule.status();
    const auto handling = with_.rules.handling_of(*rule, with_.memory.rules().default_handling());
    if (!handling) return handling.status();
    (*reply)["handling"] = handling->bits();
  }
  if (request.contains("weight")) with_.flusher.set_weight(run, weight_of(request));
  take_hints(run, request);
  return take_rules(run, request, reply);
}

// The launcher has refused what it could: a run does not fail for the rest.
void RunCommands::take_hints(std::uint32_t run, const Json& request) const {
  if (with_.hints != nullptr) add_hints(run, request, with_.hints);
}

Status RunCommands::take_rules(std::uint32_t run, const Json& request, Json* reply) const {
  std::vector<FileRule> rules;
  if (const auto list = request.find("rules"); list != request.end() && list->is_array()) {
    for (const Json& object : *list) {
      auto rule = rule_from_json(object);
      if (!rule) return rule.status();
      rules.push_back(std::move(rule.value()));
    }
  }
  if (with_.hints != nullptr) add_hints_of_rules(run, rules, with_.hints);
  std::vector<FileRule> scratch_rules;
  if (const auto list = request.find("scratch"); list != request.end() && list->is_array()) {
    for (const Json& directory : *list) {
      if (!directory.is_string()) return Status(StatusCode::kInvalid, "scratch names directories");
      const auto place = with_.scratch.add(run, directory.get<std::string>());
      if (!place) return place.status();
      scratch_rules.push_back(scratch_rule(directory.get<std::string>()));
    }
  }
  for (const ScratchSpace::Place& place : with_.scratch.places_of(run))
    (*reply)["scratch"].push_back({{"source", place.source}, {"target", place.target}});
  rules.insert(rules.begin(), scratch_rules.begin(), scratch_rules.end());
  return with_.rules.begin_run(run, rules);
}

// Slots that are taken later are not waited for: processes of other runs start all the time.
bool RunCommands::await_claims() const {
  constexpr std::chrono::seconds kMost(5);
  constexpr std::chrono::microseconds kPause(200);
  const auto until = std::chrono::steady_clock::now() + kMost;
  const std::uint64_t enough = with_.clients.claims_round() + ClientTable::kRoundsOfClaims;
  while (with_.clients.has_unread_claims() && with_.clients.claims_round() < enough) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

void RunCommands::settle_deaths(std::uint32_t run) const {
  constexpr int kTries = 5000;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    bool waiting = false;
    for (const ClientInfo& client : with_.clients.active()) {
      if (client.run == run && ::kill(client.pid, 0) != 0 && errno == ESRCH) waiting = true;
    }
    if (!waiting) break;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  with_.reaper.wait_until_idle(2000);
}

void RunCommands::end(ControlPeer& peer, std::uint64_t session, const Json& request) {
  const std::string id = text_of(request, "run");
  const std::optional<Run> run = with_.runs.find(id);
  if (!run) return peer.fail("no run " + id + " is under way", "");
  const bool knows_all = await_claims();
  settle_deaths(run->number());
  if (with_.sampler != nullptr) with_.sampler->count_files(*run);
  DrainOutcome outcome = with_.drain.run(peer, request);
  if (!knows_all) {
    log::error("run {} ends, and the node could not read what processes have sent to it", id);
    outcome.stored = false;
  }
  Json reply = {{"kind", "done"}};
  add_outcome(reply, outcome);
  if (!outcome.left.empty() && flag_of(request, "keep", false)) add_kept(reply);
  reply["report"] = with_.report.run(*run, outcome.seconds);
  if (with_.sampler != nullptr) with_.sampler->end(*run, RunEnd::kTold);
  with_.runs.end(id);
  // From here on a successor answers the same, and forgets what this service has not forgotten yet.
  with_.kept.sessions().end(session, id, {peer.request(), reply});
  with_.kept.save();
  forget(run->number());
  peer.send(reply);
}

void RunCommands::add_kept(Json& reply) const {
  Json kept = with_.drain.kept();
  if (kept.is_null()) return;
  const NodeConfig& config = with_.config;
  kept["directory"] = config.tiers[durable_tier_of(config)].directory;
  reply["kept"] = std::move(kept);
}

void RunCommands::forget(std::uint32_t run) const {
  with_.rules.end_run(run);
  with_.scratch.end_run(run);
  with_.flusher.end_run(run);
  with_.accounts.end_run(run);
  with_.clients.forget_run(run);
  if (with_.arrays != nullptr) with_.arrays->end_run(run);
  if (with_.hints != nullptr) with_.hints->end_run(run);
  with_.stop.note_run_ended();
}

void RunCommands::on_close(std::uint64_t session) {
  const std::string id = with_.kept.sessions().close(session);
  if (id.empty()) return;
  const std::optional<Run> run = with_.runs.end(id);
  if (!run) return;
  log::warn("the launcher of run {} went away without ending it", id);
  if (with_.sampler != nullptr) with_.sampler->end(*run, RunEnd::kAbandoned);
  forget(run->number());
  with_.kept.save();
  if (!with_.config.private_node) return;
  // Nobody else would end a private node.
  with_.stop.request_stop_when_unused();
}

void RunCommands::end_absent(const std::vector<std::uint64_t>& sessions) {
  for (const std::uint64_t session : with_.kept.sessions().all()) {
    if (std::find(sessions.begin(), sessions.end(), session) == sessions.end()) on_close(session);
  }
}

}  // namespace cairn::node
