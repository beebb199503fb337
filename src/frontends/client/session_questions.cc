// SPDX-License-Identifier: Apache-2.0
// What the session of a process asks its service.
#include "frontends/client/question.h"
#include "frontends/client/session.h"

namespace cairn {

// A vfork child may end before it has waited for the answer, and its parent's name lives on.
bool Session::ask(const protocol::Question& question, int* error) const {
  if (is_attached()) {
    if (!is_vfork_child() &&
        ask_in_ring({memory_, self(), {socket_, socket_inode_}, socket_path_, run_}, question,
                    error))
      return true;
    // Another node of the same name may listen by now, for which our numbers mean other files.
    memory_.look_after_service();
    if (!memory_.is_served()) return false;
  }
  return ask_over_socket(socket_path_, question, error);
}

int Session::ask_about(const protocol::Question& question) const {
  if (is_test_ || !is_attached()) return -EIO;
  int error = 0;
  return ask(question, &error) ? error : -EIO;
}

int Session::request_flush(ObjectIndex object, bool durable) {
  if (is_test_ || !is_attached()) return -EIO;
  protocol::Question question;
  question.type = protocol::Type::kFlush;
  question.object = object;
  question.durable = durable;
  int error = 0;
  return ask(question, &error) ? error : flushed_without_service(memory_.objects().at(object));
}

int Session::request_durable(ObjectIndex object) {
  protocol::Question question;
  question.type = protocol::Type::kMakeDurable;
  question.object = object;
  return ask_about(question);
}

// A service that is dead for good replays no log.
int Session::note_cut(ObjectIndex object, std::uint64_t size) {
  protocol::Question question;
  question.type = protocol::Type::kNoteCut;
  question.object = object;
  question.size = size;
  const int error = ask_about(question);
  return memory_.is_served() ? error : 0;
}

void Session::note_renamed(ObjectIndex object) {
  protocol::Question question;
  question.type = protocol::Type::kNoteRenamed;
  question.object = object;
  (void)ask_about(question);
}

bool Session::request_sync(std::uint64_t device, int* error) const {
  protocol::Question question;
  question.type = protocol::Type::kSync;
  question.device = device;
  return !is_test_ && is_configured() && ask(question, error);
}

int Session::meet_unserved(ObjectIndex object) {
  if (is_test_) return 0;
  protocol::Question question;
  question.type = protocol::Type::kMeetUnserved;
  question.object = object;
  int error = 0;
  return ask(question, &error) ? error : -EIO;
}

}  // namespace cairn
