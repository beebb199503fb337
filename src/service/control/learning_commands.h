// SPDX-License-Identifier: Apache-2.0
// The commands of control.sock about what the node learns: heat maps, and traces that are recorded.
//
// Thread safety: any number of connections at once. Ownership: borrows everything.
#pragma once

#include <string>

#include "memory/tiers/node_memory.h"
#include "service/control/control_server.h"
#include "service/control/kept_state.h"
#include "service/learning/event_reader.h"
#include "service/learning/heat_table.h"
#include "service/learning/order_declarations.h"
#include "service/learning/trace_recorder.h"

namespace cairn::node {

// The parts that learn; all of them outlive the commands.
struct LearningParts {
  const NodeMemory& memory;
  EventReader& events;
  OrderDeclarations& declarations;
  HeatTable& heat;
  TraceRecorder& recorder;
  KeptState& kept;
};

class LearningCommands {
 public:
  explicit LearningCommands(const LearningParts& parts) : with_(parts) {}

  // True when `command` is one of these; it has been answered then.
  bool on_request(ControlPeer& peer, std::uint64_t session, const std::string& command,
                  const Json& request);

  // The recording that the connection asked for ends with it.
  void on_close(std::uint64_t session);

 private:
  void declare(ControlPeer& peer, const Json& request) const;
  void heatmap(ControlPeer& peer, const Json& request) const;
  void trace_start(ControlPeer& peer, std::uint64_t session, const Json& request) const;
  void trace_stop(ControlPeer& peer) const;

  const LearningParts with_;
};

}  // namespace cairn::node
