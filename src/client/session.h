// SPDX-License-Identifier: Apache-2.0
// A process's attachment to its node: connect, handshake, map; one owner for the process, an Actor per thread.
//
// A forked child must not work under its parent's owner. The session's state lives in a page that the kernel wipes on
// fork (MADV_WIPEONFORK), so the child finds itself not attached, whatever way it was forked, and attaches anew at its
// first call. A vfork child shares the page and works as its parent, who is suspended.
//
// Thread safety: attach() and actor() from any thread. Signal handlers: actor() of a thread that has one.
// Ownership: one per process, never destroyed (stdio streams are flushed after destructors).
#pragma once

#include <cstdint>

#include "buffer/hand_over.h"
#include "client/protocol.h"
#include "tiers/actor.h"

namespace cairn {

class Session final : public HandOver {
 public:
  // The process's session. Does not attach.
  static Session& instance();

  // Attaches to the node at `socket_path` if this process is not attached; cheap when it is.
  // Returns false when there is no node: the caller passes calls through to the kernel.
  bool attach();
  void configure(const char* socket_path, std::uint32_t run);
  bool is_attached() const;

  const NodeMemory& memory() const;
  Owner self() const;
  // This thread's actor. Requires: attached.
  Actor& actor();
  // Called by the thread-exit hook: gives the thread's leases back.
  void leave_thread();

  bool hand_over(ObjectIndex object, int fd) override;
  // Asks the service to store an object that this process can only read. 0 or -errno.
  int request_flush(ObjectIndex object, bool durable);
  void notify(const protocol::ObjectMessage& message);
  void notify_inherited();
  void notify_foreign(const char* command);
  // The private descriptors of the session (socket, segments, pools): never the application's to close or see.
  bool owns_descriptor(int fd) const;
  // Nanoseconds that attach() took, for `cairn status`.
  std::int64_t attach_ns() const;
};

}  // namespace cairn
