// SPDX-License-Identifier: Apache-2.0
// The commands of control.sock: each goes to the part that answers it.
//
// Thread safety: any number of connections at once. Ownership: borrows everything.
#pragma once

#include <cstdint>

#include "base/node_config.h"
#include "memory/tiers/node_memory.h"
#include "service/control/array_commands.h"
#include "service/control/control_server.h"
#include "service/control/drain_request.h"
#include "service/control/explain.h"
#include "service/control/file_commands.h"
#include "service/control/learning_commands.h"
#include "service/control/run_commands.h"
#include "service/control/status_report.h"
#include "service/control/stop_request.h"

namespace cairn::node {

// The parts that answer; all of them outlive the commands.
struct ControlParts {
  const NodeConfig& config;
  const NodeMemory& memory;
  StatusReport& status;
  const Explanation& explanation;
  const DrainRequest& drain;
  RunCommands& runs;
  FileCommands& files;
  LearningCommands& learning;
  StopRequest& stop;
  const ArrayCommands* arrays = nullptr;  // null: nobody tells of arrays
};

class ControlCommands final : public ControlHandler {
 public:
  explicit ControlCommands(const ControlParts& parts) : parts_(parts) {}

  void on_request(ControlPeer& peer, std::uint64_t session, const Json& request) override;
  void on_close(std::uint64_t session) override;

 private:
  void status(ControlPeer& peer);
  void drain(ControlPeer& peer, const Json& request) const;
  void explain(ControlPeer& peer, const Json& request) const;
  void config(ControlPeer& peer) const;
  void shutdown(ControlPeer& peer, const Json& request) const;

  const ControlParts parts_;
};

}  // namespace cairn::node
