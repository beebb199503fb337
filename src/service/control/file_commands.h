// SPDX-License-Identifier: Apache-2.0
// The commands of control.sock that speak of files: set (also pin and unpin), stage-in, stage-out.
//
// Thread safety: any number of connections at once. Ownership: borrows everything.
#pragma once

#include <string>

#include "memory/tiers/node_memory.h"
#include "service/capacity/account_registry.h"
#include "service/control/control_server.h"
#include "service/control/kept_state.h"
#include "service/fetching/stager.h"
#include "service/treatment/rule_registry.h"

namespace cairn::node {

class FileCommands {
 public:
  FileCommands(const NodeMemory& memory, const AccountRegistry& accounts, RuleRegistry& rules,
               const Stager& stager, KeptState& kept)
      : memory_(memory), accounts_(accounts), rules_(rules), stager_(stager), kept_(kept) {}

  // True when `command` is one of these; it has been answered then.
  bool on_request(ControlPeer& peer, const std::string& command, const Json& request);

 private:
  void set(ControlPeer& peer, const Json& request);
  void stage(ControlPeer& peer, const Json& request, bool in);

  const NodeMemory& memory_;
  const AccountRegistry& accounts_;
  RuleRegistry& rules_;
  const Stager& stager_;
  KeptState& kept_;
};

}  // namespace cairn::node
