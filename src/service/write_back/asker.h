// SPDX-License-Identifier: Apache-2.0
// Who waits for an answer of the service: a process at a connection, a thread in the request ring,
// or nobody.
//
// A thread in the ring is answered in any case: with EIO when nothing else was said.
//
// Thread safety: one thread at a time. Ownership: move-only; shares the connection, borrows the
// memory.
#pragma once

#include <optional>
#include <utility>

#include "memory/tiers/node_memory.h"
#include "service/process/unique_fd.h"

namespace cairn::node {

class Asker {
 public:
  Asker() = default;
  explicit Asker(SharedFd connection) : connection_(std::move(connection)) {}
  Asker(const NodeMemory& memory, const RequestRing::Place& place)
      : memory_(&memory), place_(place) {}
  Asker(Asker&& other) noexcept
      : connection_(std::move(other.connection_)),
        memory_(std::exchange(other.memory_, nullptr)),
        place_(other.place_) {}
  Asker& operator=(Asker&&) = delete;
  ~Asker();

  // Once. 0, a value or -errno. Does not wait for a process that does not take its answer.
  void answer(int result);

 private:
  SharedFd connection_;
  const NodeMemory* memory_ = nullptr;
  RequestRing::Place place_;
};

}  // namespace cairn::node
