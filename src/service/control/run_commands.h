// SPDX-License-Identifier: Apache-2.0
// The commands of control.sock that begin and end runs.
//
// Thread safety: any number of connections at once. Ownership: borrows everything.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/node_config.h"
#include "memory/tiers/node_memory.h"
#include "service/attachment/client_table.h"
#include "service/attachment/reaper.h"
#include "service/attachment/run_table.h"
#include "service/capacity/account_registry.h"
#include "service/control/control_server.h"
#include "service/control/drain_request.h"
#include "service/control/kept_state.h"
#include "service/control/status_report.h"
#include "service/control/stop_request.h"
#include "service/gathering/array_book.h"
#include "service/gathering/array_hints.h"
#include "service/sampling/sampler.h"
#include "service/treatment/rule_registry.h"
#include "service/treatment/scratch_space.h"
#include "service/write_back/flusher.h"

namespace cairn::node {

// The parts of the node that know of runs; all of them outlive the commands.
struct RunKeepers {
  const NodeConfig& config;
  const NodeMemory& memory;
  RunTable& runs;
  ClientTable& clients;
  AccountRegistry& accounts;
  RuleRegistry& rules;
  ScratchSpace& scratch;
  Flusher& flusher;
  Reaper& reaper;
  const DrainRequest& drain;
  const StatusReport& report;
  StopRequest& stop;
  KeptState& kept;
  ArrayBook* arrays = nullptr;  // null: nobody tells of arrays
  ArrayHints* hints = nullptr;  // null: as well
  Sampler* sampler = nullptr;   // null: no run is sampled
};

class RunCommands {
 public:
  explicit RunCommands(const RunKeepers& keepers) : with_(keepers) {}

  // True when `command` is one of these; it has been answered then.
  bool on_request(ControlPeer& peer, std::uint64_t session, const std::string& command,
                  const Json& request);
  // A run whose launcher went away without ending it ends here.
  void on_close(std::uint64_t session);
  // Ends the runs whose launchers went away while there was no service: a successor has adopted the
  // connections `sessions`, and no others stand for a run.
  void end_absent(const std::vector<std::uint64_t>& sessions);

 private:
  bool repeats_answer(ControlPeer& peer, std::uint64_t session) const;
  void begin(ControlPeer& peer, std::uint64_t session, const Json& request);
  void note_begun(std::uint64_t session, const Run& run, const RunSessions::Answer& answer) const;
  void end(ControlPeer& peer, std::uint64_t session, const Json& request);
  void add_kept(Json& reply) const;
  void timeline(ControlPeer& peer, const Json& request) const;
  // A run that asks for it is sampled from here on.
  void begin_samples(const Run& run, const Json& request) const;
  Run run_of(const Json& request) const;
  void forget(std::uint32_t run) const;
  // Opens the run's account in the tiers.
  Status open_account(std::uint32_t run, const Json& request) const;
  // The run's own settings and rules, beside those of the node.
  Status take_settings(std::uint32_t run, const Json& request, Json* reply) const;
  void take_hints(std::uint32_t run, const Json& request) const;
  Status take_rules(std::uint32_t run, const Json& request, Json* reply) const;
  // False when processes have taken slots and the node cannot learn in time who they are: then it
  // does not know of all that they have written.
  bool await_claims() const;
  // Deaths that the kernel has told of, or is about to tell of, are dealt with when this returns.
  void settle_deaths(std::uint32_t run) const;

  const RunKeepers with_;
};

}  // namespace cairn::node
