// SPDX-License-Identifier: Apache-2.0
// The sockets of clients that dead services have left: what is in them is read as far as a rescue
// needs it, which are descriptors of dirty files. They stay open until the end, because a client
// takes a closed one for the end of everything.
//
// Thread safety: one thread. Ownership: closes its sockets.
#pragma once

#include <string>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "service/keeping/inheritance.h"
#include "service/process/unique_fd.h"
#include "service/write_back/store_files.h"

namespace cairn::node {

class LeftSockets {
 public:
  LeftSockets(const NodeMemory& memory, StoreFiles& files, Inheritance& left,
              const std::string& socket_path);

  // Takes what clients have handed over and nobody has read. To be repeated.
  void read();
  // Closes the ring, and answers there what can be said: that a file is stored; and that what
  // needs a service has not been done. An asker without an answer, which a sync is, and a flush of
  // dirty data, looks itself.
  void answer_questions();

 private:
  void accept_all();
  void read(int socket);

  const NodeMemory& memory_;
  StoreFiles& files_;
  UniqueFd listener_;
  std::vector<UniqueFd> sockets_;
};

}  // namespace cairn::node
