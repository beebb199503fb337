// SPDX-License-Identifier: Apache-2.0
// A question to the service, which waits for the answer as long as the service takes: in the
// request ring of the node's memory, or over a connection of its own.
//
// Thread safety: any thread. Ownership: the slot or the connection ends with the call.
#pragma once

#include <time.h>

#include "base/system_call.h"
#include "frontends/client/dead_service.h"
#include "frontends/protocol/question.h"

namespace cairn {

// A process that is attached, and how it reaches its service.
struct AttachedProcess {
  const NodeMemory& memory;
  Owner self;
  ServiceConnection connection;
  const char* socket_path;
  std::uint32_t run;
};

// Tells the `cairn run` of this process, whose number the run has, that the process waits for a
// service that is not there.
void tell_of_wait(std::uint32_t run);
// Waits until there is something to read, and tells of the wait when that takes long. The caller
// goes on to wait then.
void tell_of_long_wait(int socket, std::uint32_t run);

// Whether `goes_on()` still holds after a moment, 100 ms at most: a write may be under way.
template <typename GoesOn>
bool outlasts_a_moment(GoesOn&& goes_on) {
  constexpr int kLooksMax = 100;
  constexpr timespec kPause{0, 1'000'000};
  for (int looks = 0; looks < kLooksMax; ++looks) {
    if (!goes_on()) return false;
    sys::call(SYS_nanosleep, sys::word(&kPause), 0);
  }
  return goes_on();
}

// The answer to a flush that no service gives any more: 0 when the writers have stored everything
// themselves, else -EIO. Waits for a write that is under way, a moment at most.
int flushed_without_service(const Object& object);

// False when no answer came: the ring is full or closed, or the service is dead, or the process has
// forked meanwhile. Else `*error` is 0 or -errno.
bool ask_in_ring(const AttachedProcess& process, const protocol::Question& question, int* error);

// False when no answer (protocol::Flushed) came; else `*error` is 0 or -errno.
bool ask_over_socket(const char* socket_path, const protocol::Question& question, int* error);
// The same about the names of a directory (kMakeNamesDurable).
bool ask_about_names(const char* socket_path, int directory, bool in_store, int* error);

}  // namespace cairn
