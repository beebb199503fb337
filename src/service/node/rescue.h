// SPDX-License-Identifier: Apache-2.0
// What is done for a node whose service dies again and again: everything dirty is stored through
// the descriptors that the services have left, what cannot be stored is saved in a rescue
// directory, and the node ends. Nothing of the service but the node's memory and those descriptors
// is used.
//
//   after it           clients                     exit status
//   all is stored      go on, and write through    0; `stored` stands in the node's directory
//   something is not   the same                    74; `rescued` says how much is where
//
// Clients cannot see a file before its data is stored: the kept sockets stay open to the end, so
// those who need the service wait, and new processes with them (their bound is that of any wait for
// a service). Processes that have the memory mapped see the newest bytes.
//
// A rescue may die itself, of damaged memory above all. The next one leaves out what it died of:
// the takeover, which mends the memory; storing one file, whose blocks are saved instead; or saving
// it.
//
// Thread safety: the only thread of a process that the keeper has made.
#pragma once

#include "base/node_config.h"
#include "service/keeping/keeper.h"

namespace cairn::node {

// Returns: the exit status of the process.
int run_rescue(const NodeConfig& config, Succession& succession);

}  // namespace cairn::node
