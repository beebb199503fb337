// SPDX-License-Identifier: Apache-2.0
// The commands of control.sock about what the node learns: heat maps, and traces that are recorded.
//
// Thread safety: any number of connections at once. Ownership: borrows the context.
#pragma once

#include <string>

#include "service/attachment/node_context.h"
#include "service/control/control_server.h"

namespace cairn::node {

class LearningCommands {
 public:
  explicit LearningCommands(const NodeContext& context) : context_(context) {}

  // True when `command` is one of these; it has been answered then.
  bool on_request(ControlPeer& peer, std::uint64_t session, const std::string& command,
                  const nlohmann::json& request);

 private:
  void declare(ControlPeer& peer, const Json& request) const;
  void heatmap(ControlPeer& peer, const nlohmann::json& request) const;
  void trace_start(ControlPeer& peer, std::uint64_t session, const nlohmann::json& request) const;
  void trace_stop(ControlPeer& peer) const;

  const NodeContext& context_;
};

}  // namespace cairn::node
