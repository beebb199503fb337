// SPDX-License-Identifier: Apache-2.0
// The commands of control.sock that speak of files: set (also pin and unpin), stage-in, stage-out.
//
// Thread safety: any number of connections at once.
#pragma once

#include "service/attachment/node_context.h"
#include "service/control/control_server.h"

namespace cairn::node {

class FileCommands {
 public:
  explicit FileCommands(const NodeContext& context) : context_(context) {}

  // True when `command` is one of these; it has been answered then.
  bool on_request(ControlPeer& peer, const std::string& command, const nlohmann::json& request);

 private:
  void set(ControlPeer& peer, const nlohmann::json& request);
  void stage(ControlPeer& peer, const nlohmann::json& request, bool in);

  const NodeContext& context_;
};

}  // namespace cairn::node
