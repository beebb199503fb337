// SPDX-License-Identifier: Apache-2.0
// The first words between a process and its node: hello, and a welcome or a refusal.
//
// Thread safety: any thread. Ownership: the descriptors of a welcome belong to the caller.
#pragma once

#include <cstdint>

#include "frontends/client/message_socket.h"
#include "frontends/protocol/protocol.h"

namespace cairn {

struct Greeting {
  protocol::Welcome welcome;
  ReceivedMessage message;  // its descriptors are the segments' and the pools'
  protocol::UnservedReason refusal = protocol::UnservedReason::kNone;
};

// Introduces this process to the node at `socket`. 0 or -errno.
int say_hello(int socket, std::uint32_t run, const SlotClaim& claim);

// Reads the node's answer. 0 with a welcome; -EAGAIN with a refusal; another -errno when there was
// no answer.
int await_welcome(int socket, Greeting* greeting);

// A process that was welcome cannot use what it got.
void decline(int socket);

}  // namespace cairn
