// SPDX-License-Identifier: Apache-2.0
#include "service/rescue/left_sockets.h"

#include <errno.h>
#include <sys/socket.h>

#include <utility>
#include <variant>

#include "base/check.h"
#include "service/attachment/client_message.h"
#include "service/process/local_socket.h"

namespace cairn::node {
namespace {

// A client that sends without an end holds nobody up.
constexpr unsigned kMessagesMax = 65536;

}  // namespace

LeftSockets::LeftSockets(const NodeMemory& memory, StoreFiles& files, Inheritance& left,
                         const std::string& socket_path)
    : memory_(memory), files_(files), listener_(left.take(KeptKind::kClientListener)) {
  for (const KeptKind kind : {KeptKind::kClient, KeptKind::kLedger}) {
    for (InheritedFd& each : left.take_all(kind)) sockets_.push_back(std::move(each.fd));
  }
  for (UniqueFd& each : left.take_connections(socket_path)) sockets_.push_back(std::move(each));
}

void LeftSockets::accept_all() {
  while (listener_) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    Peer peer;
    if (peer_of(socket.get(), &peer) && peer.uid == ::geteuid())
      sockets_.push_back(std::move(socket));
  }
}

void LeftSockets::read() {
  accept_all();
  for (const UniqueFd& socket : sockets_) read(socket.get());
}

void LeftSockets::read(int socket) {
  for (unsigned messages = 0; messages < kMessagesMax; ++messages) {
    Datagram datagram;
    if (receive_datagram(socket, 0, Look::kTake, &datagram) != Received::kDatagram) return;
    ClientMessage message =
        decode(std::move(datagram), memory_.objects(), memory_.descriptions().capacity());
    auto* handed = std::get_if<message::ObjectDescriptor>(&message);
    if (handed == nullptr || !handed->descriptor) continue;
    (void)files_.insert(handed->object, std::move(handed->descriptor), FileRoom(), 0);
  }
}

void LeftSockets::answer_questions() {
  const RequestRing& ring = memory_.requests();
  const OwnerTable& owners = memory_.owners();
  ring.close();
  ring.take(owners, [&](const RequestRing::Taken& taken) {
    const ClientQuestion question = decode(taken.question, memory_.objects());
    std::int32_t result = -EIO;
    // The asker looks itself when nobody is there any more: what a rescue has stored may still be
    // owed by the log, and a writer that lives may be storing its last write.
    if (std::holds_alternative<message::Sync>(question)) return;
    if (const auto* flush = std::get_if<message::Flush>(&question)) {
      if (memory_.objects().at(flush->object).dirty_blocks.load() != 0) return;
      result = 0;
    }
    ring.answer(taken.place, result, owners);
  });
}

}  // namespace cairn::node
