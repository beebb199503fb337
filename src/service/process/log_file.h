// SPDX-License-Identifier: Apache-2.0
// The service's log: node.log in the node directory, sparse, for operators. Where it grows beyond
// kLogBytesMax, the older half goes, and a line says how much that was.
//
// Thread safety: open_log() once at start; everything else, log.h included, is then safe from any
// thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cairn::node {

inline constexpr std::size_t kLogBytesMax = std::size_t{4} << 20;

// Falls back to standard error, which the launcher has put into the same file.
void open_log(const std::string& path);
void close_log();
// The file is gone: goes on in a new one at `path`. While other threads log.
void move_log(const std::string& path);

// Logs a warning for the user of the node, about its configuration or a declaration. `cairn status`
// and the report of a run show the last few.
void log_warning(const std::string& text);
std::vector<std::string> kept_warnings();

}  // namespace cairn::node
