// SPDX-License-Identifier: Apache-2.0
// The commands of control.sock about datasets.
//
// Thread safety: any number of connections at once. Ownership: borrows everything.
#pragma once

#include <string>

#include "service/control/array_report.h"
#include "service/control/control_server.h"

namespace cairn::node {

class ArrayCommands {
 public:
  explicit ArrayCommands(const ArrayReport& report) : report_(report) {}

  // True when `command` is one of these; it has been answered then.
  bool on_request(ControlPeer& peer, const std::string& command, const Json& request) const;

 private:
  void list(ControlPeer& peer, const Json& request) const;

  const ArrayReport& report_;
};

}  // namespace cairn::node
