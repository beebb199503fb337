// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/asker.h"

#include <errno.h>
#include <sys/socket.h>

#include "frontends/protocol/protocol.h"

namespace cairn::node {

Asker::~Asker() {
  if (memory_ != nullptr) answer(-EIO);
}

void Asker::answer(int result) {
  if (const NodeMemory* memory = std::exchange(memory_, nullptr); memory != nullptr) {
    // Before the answer: afterwards the slot may have its next question at once.
    at_work_->end(place_.slot);
    return memory->requests().answer(place_, result, memory->owners());
  }
  const SharedFd connection = std::move(connection_);
  if (!connection) return;
  protocol::Flushed answer;
  answer.error = result < 0 ? -result : 0;
  answer.value = result > 0 ? static_cast<std::uint32_t>(result) : 0;
  // First, because a process repeats a question with a note: it would get two answers.
  if (labels_ != nullptr) labels_->note_asked(connection->get(), false);
  (void)!::send(connection->get(), &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT);
  // A socket that closes with the question unread shows its peer an error before the answer.
  char byte = 0;
  if (question_ == Question::kInSocket)
    (void)!::recv(connection->get(), &byte, sizeof byte, MSG_DONTWAIT);
}

}  // namespace cairn::node
