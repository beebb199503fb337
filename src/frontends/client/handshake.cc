// SPDX-License-Identifier: Apache-2.0
#include "frontends/client/handshake.h"

#include <errno.h>

#include <cstring>

#include "base/check.h"
#include "base/system_call.h"

namespace cairn {

int say_hello(int socket, std::uint32_t run, const SlotClaim& claim) {
  protocol::Hello hello;
  hello.run = run;
  hello.pid = sys::getpid();
  hello.claim = claim;
  std::strncpy(hello.command, program_invocation_short_name, sizeof hello.command - 1);
  return send_message(socket, &hello, sizeof hello, -1);
}

int await_welcome(int socket, Greeting* greeting) {
  alignas(protocol::Welcome) char answer[protocol::kMessageBytesMax];
  greeting->message = receive_message(socket, answer, sizeof answer);
  const ReceivedMessage& received = greeting->message;
  if (received.size < 0) return static_cast<int>(received.size);
  if (received.size == 0) return -ECONNRESET;
  protocol::Header header;
  const bool is_known = received.size >= static_cast<long>(sizeof header);
  if (is_known) std::memcpy(&header, answer, sizeof header);
  const bool is_ours =
      is_known && header.magic == protocol::kMagic && header.version == protocol::kVersion;
  if (is_ours && header.type == protocol::Type::kWelcome &&
      received.size == static_cast<long>(sizeof greeting->welcome)) {
    std::memcpy(&greeting->welcome, answer, sizeof greeting->welcome);
    CAIRN_DCHECK(received.descriptor_count <= kPassedDescriptorsMax);
    return 0;
  }
  for (unsigned index = 0; index < received.descriptor_count; ++index)
    sys::close(received.descriptors[index]);
  protocol::Refused refused;
  greeting->refusal = protocol::UnservedReason::kOtherVersion;
  if (is_ours && received.size == static_cast<long>(sizeof refused)) {
    std::memcpy(&refused, answer, sizeof refused);
    greeting->refusal = refused.code;
  }
  return -EAGAIN;
}

void decline(int socket) {
  protocol::Header header;
  header.type = protocol::Type::kDeclined;
  (void)send_message(socket, &header, sizeof header, -1);
}

}  // namespace cairn
