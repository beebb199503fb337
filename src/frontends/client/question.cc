// SPDX-License-Identifier: Apache-2.0
#include "frontends/client/question.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "base/crash_point.h"
#include "base/system_call.h"
#include "base/wait_word.h"
#include "frontends/client/begun_calls.h"
#include "frontends/client/descriptor_floor.h"
#include "frontends/client/message_socket.h"

namespace cairn {
namespace {

constexpr int kLookMs = 1000;
constexpr unsigned kSleepsPerLook = kLookMs / RequestRing::kSleepMs;
static_assert(kWaitToldMs % kLookMs == 0, "one of the looks is the one that tells");
constexpr int kConnectMs = 1000;

// Asked when the program has closed the connection behind our back.
bool has_no_listener(const char* socket_path) {
  const int socket = connect_seqpacket(socket_path, descriptor_floor(), kConnectMs);
  if (socket >= 0) sys::close(socket);
  return socket == -ECONNREFUSED || socket == -ENOENT;
}

// A place that a jump out of the wait has left stays taken until its thread asks again.
constinit thread_local BegunCalls<RequestRing::Place> begun_questions{};

class BegunQuestion {
 public:
  BegunQuestion(const void* frame, const RequestRing::Place& place)
      : frame_(frame), is_followed_(begun_questions.begin(frame, place)) {}
  ~BegunQuestion() {
    // Taken for one that was left, it was withdrawn: then its wait has seen that.
    if (is_followed_) (void)begun_questions.end(frame_);
  }
  BegunQuestion(const BegunQuestion&) = delete;
  BegunQuestion& operator=(const BegunQuestion&) = delete;

 private:
  const void* frame_;
  bool is_followed_;
};

bool receive_answer(int socket, int* error) {
  alignas(protocol::Flushed) char answer[protocol::kMessageBytesMax];
  const ReceivedMessage received = receive_message(socket, answer, sizeof answer);
  protocol::Flushed flushed;
  if (received.size != static_cast<long>(sizeof flushed)) return false;
  std::memcpy(&flushed, answer, sizeof flushed);
  *error = -flushed.error;
  return flushed.header.magic == protocol::kMagic &&
         flushed.header.type == protocol::Type::kFlushed;
}

template <typename Message>
bool ask_with(const char* socket_path, const Message& message, int* error, int fd = -1) {
  const int socket = connect_seqpacket(socket_path, descriptor_floor(), 0);
  if (socket < 0) return false;
  const bool is_answered =
      send_message(socket, &message, sizeof message, fd) == 0 && receive_answer(socket, error);
  sys::close(socket);
  return is_answered;
}

}  // namespace

void tell_of_wait(std::uint32_t run) {
  const auto pid = static_cast<pid_t>(run);
  if (pid <= 1) return;
  siginfo_t word{};
  word.si_signo = SIGWINCH;
  word.si_code = SI_QUEUE;
  word.si_pid = sys::getpid();
  word.si_uid = sys::geteuid();
  word.si_value.sival_int = kWaitWord;
  sys::call(SYS_rt_sigqueueinfo, pid, SIGWINCH, sys::word(&word));
}

void tell_of_long_wait(int socket, std::uint32_t run) {
  pollfd entry{socket, POLLIN, 0};
  const timespec most = to_timespec(std::int64_t{kWaitToldMs} * 1'000'000);
  if (sys::call(SYS_ppoll, sys::word(&entry), 1, sys::word(&most), 0, 0) == 0) tell_of_wait(run);
}

int flushed_without_service(const Object& object) {
  const auto is_dirty = [&] { return object.dirty_blocks.load(std::memory_order_acquire) != 0; };
  return outlasts_a_moment(is_dirty) ? -EIO : 0;
}

bool ask_in_ring(const AttachedProcess& process, const protocol::Question& question, int* error) {
  CAIRN_DCHECK(static_cast<bool>(process.self));
  const RequestRing& ring = process.memory.requests();
  const OwnerTable& owners = process.memory.owners();
  const void* frame = __builtin_frame_address(0);
  begun_questions.end_left(frame, [&](const RequestRing::Place& left) { ring.withdraw(left); });
  const std::optional<RequestRing::Place> place = ring.ask(process.self, words_of(question));
  if (!place) return false;
  CAIRN_CRASH_POINT("client.asked");
  const BegunQuestion begun(frame, *place);
  for (int waits_ms = kLookMs;; waits_ms += kLookMs) {
    std::int32_t result = 0;
    const RequestRing::Waited waited = ring.await(*place, owners, kSleepsPerLook, &result);
    // Nobody has even taken it.
    const bool is_untaken = waited == RequestRing::Waited::kStill &&
                            ring.word(place->slot).stage() == RequestStage::kAsked;
    if (is_untaken && waits_ms == kWaitToldMs) tell_of_wait(process.run);
    if (waited == RequestRing::Waited::kAnswered) *error = result;
    CAIRN_CRASH_POINT("client.answered");
    if (waited != RequestRing::Waited::kStill) return waited == RequestRing::Waited::kAnswered;
    process.memory.look_after_service();
    // Where this process knows the number of the service's, that has said more than a path can.
    const bool knows_numbers = process.memory.slot(process.self.slot()).pid.load() == sys::getpid();
    if (!knows_numbers && process.connection.is_lost() && has_no_listener(process.socket_path)) {
      ring.withdraw(*place);
      return false;
    }
  }
}

bool ask_over_socket(const char* socket_path, const protocol::Question& question, int* error) {
  if (question.type == protocol::Type::kSync) {
    protocol::SyncMessage sync;
    sync.device = question.device;
    return ask_with(socket_path, sync, error);
  }
  protocol::ObjectMessage about;
  about.header.type = question.type;
  about.object = raw(question.object);
  about.durable = question.durable ? 1 : 0;
  about.size = question.size;
  return ask_with(socket_path, about, error);
}

bool ask_about_names(const char* socket_path, int directory, bool in_store, int* error) {
  protocol::ObjectMessage about;
  about.header.type = protocol::Type::kMakeNamesDurable;
  about.durable = in_store ? 1 : 0;
  return ask_with(socket_path, about, error, directory);
}

}  // namespace cairn
