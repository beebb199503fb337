// SPDX-License-Identifier: Apache-2.0
// The files of one node in its run directory, and the lock that keeps a second node of the same
// name out.
//
// Thread safety: one thread. Ownership: removes node.pid and the sockets on destruction.
#pragma once

#include <string>

#include "base/status.h"
#include "node/unique_fd.h"

namespace cairn::node {

class NodeDirectory {
 public:
  NodeDirectory() = default;
  NodeDirectory(NodeDirectory&&) = default;
  NodeDirectory& operator=(NodeDirectory&&) = default;
  ~NodeDirectory();

  // Creates the directory if need be and takes the lock.
  // Errors: kExists when a live service has it, kDenied when it is another user's or open to
  // others.
  static Result<NodeDirectory> open(const std::string& path, const std::string& name);

  std::string client_socket() const { return path_ + "/client.sock"; }
  std::string control_socket() const { return path_ + "/control.sock"; }
  std::string log() const { return path_ + "/node.log"; }

 private:
  std::string path_;
  UniqueFd lock_;  // node.pid; the lock dies with the process, whatever way it dies
};

}  // namespace cairn::node
