// SPDX-License-Identifier: Apache-2.0
// The service's log: node.log in the node directory, sparse, for operators.
//
// Thread safety: open_log() once at start; spdlog's default logger is then safe from any thread.
#pragma once

#include <string>

namespace cairn::node {

// Falls back to standard error, which the launcher has put into the same file.
void open_log(const std::string& path);
void close_log();

}  // namespace cairn::node
