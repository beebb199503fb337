// SPDX-License-Identifier: Apache-2.0
//
// Where nodes live on this machine: the private run root of a user, one directory per node in it,
// and which of them are alive. Also where the installed parts of Cairn are.
//
// Thread safety: stateless functions. Ownership: results are values. Failures throw cli::Failure.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace cairn::cli {

struct NodePaths {
  std::string name;
  std::string run_root;
  std::string directory;
  std::string control_socket;
  std::string client_socket;
  std::string config_file;
  std::string log_file;
};

// $CAIRN_RUN_ROOT, else $XDG_RUNTIME_DIR/cairn, else /tmp/cairn-<uid>. Does not touch the file
// system.
std::string run_root_path();

// Creates the run root with mode 0700 if it is missing.
// Errors: it is not a directory, belongs to another user, or is open to others.
void ensure_run_root(const std::string& run_root);

// Requires: a valid name. Errors: the path is too long for a socket address.
NodePaths node_paths(const std::string& name);

// Errors: an empty name, more than 48 characters, others than letters, digits, "_", "-", ".".
void check_node_name(const std::string& name);

// Names of the nodes whose control socket answers, sorted.
std::vector<std::string> live_nodes();

// The node that a command talks to: `requested` when it is not empty; else the node of the run that
// this process is part of; else the only live node. `requested` may also be the path of a node
// directory.
// Errors: none or several, unknown, another user's; each with its remedy.
NodePaths select_node(const std::string& requested);

// Throws the Failure that explains why nobody answers for this node.
[[noreturn]] void fail_unknown_node(const NodePaths& node);

// True when the process is part of a run (CAIRN_SOCKET is set).
bool inside_run();

// Directory of this executable, symbolic links resolved.
std::string executable_path();

// The path of a file of Cairn, whose name is relative to the directory that bin/ is in.
std::string installed_file(const std::string& name);

// The library by which HDF5 serves reads from the tiers.
struct ArrayConnector {
  std::string path;
  std::string problem;    // "is cut off"; empty: none
  bool is_there = false;  // false: Cairn was built without it
};
ArrayConnector find_array_connector();

// Errors: libcairn_preload.so is not beside the executable.
std::string preload_library_path();
// Errors: throws Failure where HDF5's connector was not built.
void require_array_connector();

std::string user_name(uid_t user);

}  // namespace cairn::cli
