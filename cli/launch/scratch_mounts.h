// SPDX-License-Identifier: Apache-2.0
//
// How a program comes to see scratch directories: in a mount namespace of its own, in which the
// node's directories lie over those that the user named. The kernel keeps the namespace there as
// everywhere, and nobody outside the run sees any of it.
//
// Without the right to mount, the namespace is made inside a user namespace in which the user has
// the same number; user_namespaces(7). The calls between fork and exec allocate nothing.
//
// Thread safety: enter_scratch() in the child, between fork and exec.
#pragma once

#include <string>
#include <vector>

namespace cairn::cli {

// A directory that the program sees in the place of another one.
struct ScratchMount {
  std::string source;  // of the node
  std::string target;  // where the program looks
};

// Returns: 0; or an errno, and which step failed.
int enter_scratch(const std::vector<ScratchMount>& mounts, const char** failed_step);

}  // namespace cairn::cli
