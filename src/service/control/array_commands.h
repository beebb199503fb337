// SPDX-License-Identifier: Apache-2.0
// The commands of control.sock about datasets.
//
// Thread safety: any number of connections at once. Ownership: borrows everything.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_rule.h"
#include "service/control/array_report.h"
#include "service/control/control_server.h"
#include "service/control/kept_state.h"

namespace cairn::node {

// Adds the hints of a run's request, "arrays": [TEXT, ...]. The node's log and the report of the
// run say what is wrong with those that are left out.
void add_hints(std::uint32_t run, const Json& request, ArrayHints* hints);

// Adds those that rules of the run give; run 0: of the node's schema.
void add_hints_of_rules(std::uint32_t run, const std::vector<FileRule>& rules, ArrayHints* hints);

class ArrayCommands {
 public:
  ArrayCommands(const ArrayReport& report, ArrayHints& hints, KeptState& kept)
      : report_(report), hints_(hints), kept_(kept) {}

  // True when `command` is one of these; it has been answered then.
  bool on_request(ControlPeer& peer, const std::string& command, const Json& request) const;

 private:
  void list(ControlPeer& peer, const Json& request) const;
  void declare(ControlPeer& peer, const Json& request) const;

  const ArrayReport& report_;
  ArrayHints& hints_;
  KeptState& kept_;
};

}  // namespace cairn::node
