// SPDX-License-Identifier: Apache-2.0
// The files of one node in its run directory, and the lock that keeps a second node of the same
// name out. Somebody may remove them under a node that is at work (a cleaner of /tmp): the node
// hears of it and makes them again.
//
// Thread safety: one thread. Ownership: removes node.pid and the sockets on destruction.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "service/process/unique_fd.h"

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

  // The same by a successor, which has the lock of the dead service.
  static Result<NodeDirectory> adopt(const std::string& path, const std::string& name,
                                     UniqueFd lock);

  // The descriptor that has the lock. It keeps its number, which has a label, after restore().
  int lock() const { return lock_.get(); }
  // Readable when something in the directory was removed or renamed, or itself; -1 when the kernel
  // has no watch to give.
  int watch() const { return watch_.get(); }
  // Whether directory, lock and sockets are all there, looked at anew. Takes what the watch has to
  // tell.
  bool is_intact();
  // Makes directory, lock and configuration again. The sockets and the log are for those who use
  // them.
  // Errors: kExists when another node has the name by now.
  Status restore();

  // Leaves word that the service ends with everything stored, for those who ask for the node
  // afterwards.
  void note_stored() const;
  // The same for a service that could not store everything, and for what a rescue has made of it.
  struct RescueNote {
    std::string path;  // of the rescue directory; empty when none could be made
    std::size_t files = 0;
    std::uint64_t saved_bytes = 0;
    std::uint64_t lost_bytes = 0;
  };
  void note_rescue(const RescueNote& note) const;
  // Besides: the log in this durable tier could not be told that what it has of files is older.
  void note_old_log(const std::string& tier) const;
  // The name of the client socket stays when nobody listens any more: processes that begin find
  // that the node is dead, and not that it has ended in order.
  void keep_client_socket() { keeps_client_socket_ = true; }

  std::string client_socket() const { return path_ + "/client.sock"; }
  std::string control_socket() const { return path_ + "/control.sock"; }
  std::string log() const { return path_ + "/node.log"; }

 private:
  Status take_lock();
  Status write_pid(int lock) const;
  void read_configuration();
  bool has_lock_file() const;
  void begin_watch();

  std::string path_;
  std::string name_;
  std::string configuration_;  // the text of config.yaml, where there is one
  UniqueFd watch_;
  bool keeps_client_socket_ = false;
  UniqueFd lock_;  // node.pid; the lock dies with the process, whatever way it dies
};

}  // namespace cairn::node
