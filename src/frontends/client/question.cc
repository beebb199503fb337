// SPDX-License-Identifier: Apache-2.0
#include "frontends/client/question.h"

#include <cstring>

#include "base/system_call.h"
#include "frontends/client/descriptor_floor.h"
#include "frontends/client/message_socket.h"
#include "frontends/protocol/protocol.h"

namespace cairn {

bool ask_service(const char* socket_path, const void* message, std::size_t size, int* error) {
  const int socket = connect_seqpacket(socket_path, descriptor_floor(), 0);
  if (socket < 0) return false;
  bool is_answered = false;
  if (send_message(socket, message, size, -1) == 0) {
    alignas(protocol::Flushed) char answer[protocol::kMessageBytesMax];
    const ReceivedMessage received = receive_message(socket, answer, sizeof answer);
    protocol::Flushed flushed;
    if (received.size == static_cast<long>(sizeof flushed)) {
      std::memcpy(&flushed, answer, sizeof flushed);
      is_answered = flushed.header.magic == protocol::kMagic &&
                    flushed.header.type == protocol::Type::kFlushed;
      *error = -flushed.error;
    }
  }
  sys::close(socket);
  return is_answered;
}

}  // namespace cairn
