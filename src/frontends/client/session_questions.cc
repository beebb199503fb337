// SPDX-License-Identifier: Apache-2.0
// What the session of a process asks its service.
#include <errno.h>

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
    if (!memory_.has_service()) return false;
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
  if (ask(question, &error)) return error;
  // Others may store it. Nobody but the asking program makes it durable.
  return durable ? -EIO : flushed_without_service(memory_.objects().at(object));
}

int Session::request_durable(ObjectIndex object) {
  protocol::Question question;
  question.type = protocol::Type::kMakeDurable;
  question.object = object;
  return ask_about(question);
}

// Without a service the next fsync leaves the log (leave_log).
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

std::optional<int> Session::request_names_durable(int directory, bool in_store) const {
  const ServiceBoard& board = memory_.service_board();
  if (is_test_ || board.has_log.load(std::memory_order_acquire) == 0) return std::nullopt;
  constexpr int kAsksMax = 200;
  constexpr timespec kPause{0, 5'000'000};
  for (int asks = 0; asks < kAsksMax; ++asks) {
    int error = 0;
    if (!ask_about_names(socket_path_, directory, in_store, &error)) break;
    if (error != -EAGAIN) return error;
    sys::call(SYS_nanosleep, sys::word(&kPause), 0);
  }
  // What the log has of names would be brought back by a crash, though it is older.
  if (board.named_directories.load(std::memory_order_acquire) != 0) return -EIO;
  return std::nullopt;
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
