// SPDX-License-Identifier: Apache-2.0
//
// What a run has to know of a running node, from the configuration that its service wrote.
//
// It is read without a parser, which would take a tenth of what a run on a running node may cost.
//
// Thread safety: pure reads of the system. Ownership: results are values.
#pragma once

#include <string>

#include "cli/node/run_directory.h"

namespace cairn::cli {

struct NodeText {
  std::string text;         // the whole configuration, for a parser; empty when it cannot be read
  bool has_scratch = true;  // the node has scratch directories
  bool has_filter = true;   // the node names directories to buffer, or patterns to leave alone
};

// Errors: throws Failure when a Cairn of another version has written it.
NodeText read_node_text(const NodePaths& node);

}  // namespace cairn::cli
