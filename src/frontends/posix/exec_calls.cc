// SPDX-License-Identifier: Apache-2.0
// exec and its variants: the next program takes our descriptors over, or, where it cannot, finds
// the files stored.
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system_call.h"
#include "frontends/client/session.h"
#include "frontends/descriptors/reading_descriptor.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/posix/exec_plan.h"
#include "frontends/posix/program_search.h"
#include "frontends/processes/busy_program.h"
#include "frontends/processes/exec_memory.h"
#include "frontends/processes/launch_environment.h"
#include "frontends/processes/vfork_shadow.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(const char*, char* const*, char* const*)> execve{"execve"};
constinit RealCall<int(const char*, char* const*, char* const*)> execvpe{"execvpe"};
constinit RealCall<int(int, const char*, char* const*, char* const*, int)> execveat{"execveat"};
constinit RealCall<int(int, char* const*, char* const*)> fexecve{"fexecve"};
}  // namespace
}  // namespace real

namespace {

struct Program {
  int directory = AT_FDCWD;
  const char* path = "";
  int flags = 0;
};

// What the arrangements for so many descriptors need, one behind the other.
struct StartMemory {
  StartMemory(bool for_child, unsigned room, char* const* environment)
      : is_child(for_child),
        entries_max(room),
        notes_at(room * sizeof(Inherited)),
        table_at(notes_at + (for_child ? VforkShadow::count() : 0) * sizeof(VforkShadow::Note)),
        scratch_at((table_at + table_bytes(room) + alignof(char*)) & ~(alignof(char*) - 1)),
        end(scratch_at + LaunchEnvironment::build_bytes(environment) + inline_table_bytes(room)) {}
  std::size_t total() const { return end; }

  bool is_child;
  unsigned entries_max;
  std::size_t notes_at;
  std::size_t table_at;
  std::size_t scratch_at;
  std::size_t end;
};

// More than that may be more than a thread's stack has left.
constexpr std::size_t kStackBytesMax = 44 * 1024;

// Makes the arrangements, calls `start(environment)`, and takes them back: start() returns only
// when it failed.
template <typename Start>
int start_planned(const ExecTarget& target, const StartMemory& sizes, std::byte* memory,
                  char* const* environment, Start&& start) {
  const bool is_child = sizes.is_child;
  auto* entries = reinterpret_cast<Inherited*>(memory);
  const unsigned count = collect_inherited(is_child, entries, sizes.entries_max);
  ExecPlan plan(target, is_child, entries, count);
  char** prepared = plan.environment(environment, reinterpret_cast<char*>(memory + sizes.table_at),
                                     memory + sizes.scratch_at);
  if (prepared == nullptr) {
    plan.undo();
    errno = -plan.error();
    return -1;
  }
  VforkShadow::Kept noted;
  if (is_child)
    noted = VforkShadow::suspend(reinterpret_cast<VforkShadow::Note*>(memory + sizes.notes_at));
  if (!is_child) set_locked_readers_survive_exec(true);
  start(prepared);
  const int error = errno;
  if (!is_child) set_locked_readers_survive_exec(false);
  if (is_child) VforkShadow::resume(noted);
  plan.undo();
  errno = error;
  return -1;
}

template <typename Start>
int start_program(const Program& program, char* const* environment, Start&& start) {
  // What cannot be read is the kernel's to refuse.
  if (!LaunchEnvironment::is_member() || !is_readable_text(program.path) ||
      !LaunchEnvironment::is_readable(environment)) {
    return start(environment);
  }
  const bool is_child = is_vfork_child();
  ExecTarget target{.command = program.path};
  target.leaves_run = LaunchEnvironment::leaves_run(environment);
  const auto probe = [&program] {
    return probe_program(program.directory, program.path, program.flags, store_before_use);
  };
  target.foreign = probe().foreign;
  if (target.foreign == ForeignReason::kNone) target.foreign = reason_of_process();
  const StartMemory sizes(is_child, count_inheritable(), environment);
  const auto start_in = [&](std::byte* memory) {
    const auto attempt = [&] {
      return start_planned(target, sizes, memory, environment, start) == 0 ? 0 : errno;
    };
    errno = start_when_free(attempt, probe);
    return -1;
  };
  if (sizes.total() <= kStackBytesMax)
    return start_in(static_cast<std::byte*>(alloca(sizes.total())));
  ExecMemory memory(sizes.total(), is_child);
  if (memory.begin() == nullptr) {
    errno = ENOMEM;
    return -1;
  }
  return start_in(memory.begin());
}
int start_path(const char* path, char* const* arguments, char* const* environment) {
  return start_program({.path = path}, environment, [&](char* const* prepared) {
    return real::execve(path, arguments, prepared);
  });
}

int start_searched(const char* file, char* const* arguments, char* const* environment) {
  char found[PATH_MAX];
  const char* path = search_program(file, found, sizeof found);
  return start_program(
      {.path = path != nullptr ? path : file}, environment,
      [&](char* const* prepared) { return real::execvpe(file, arguments, prepared); });
}

// The arguments of the execl family: `first` and what follows up to a null pointer.
unsigned count_arguments(va_list list) {
  unsigned count = 1;
  while (va_arg(list, char*) != nullptr) ++count;
  return count;
}

void take_arguments(const char* first, va_list list, char** out) {
  *out++ = const_cast<char*>(first);
  while ((*out = va_arg(list, char*)) != nullptr) ++out;
}

}  // namespace
}  // namespace cairn

// `first` may itself be null; execl() and its like are called so by nobody sane.
#define CAIRN_TAKE_ARGUMENTS(first)                                                      \
  va_list list;                                                                          \
  va_start(list, first);                                                                 \
  const unsigned argument_count = (first) != nullptr ? cairn::count_arguments(list) : 0; \
  va_end(list);                                                                          \
  char** arguments = static_cast<char**>(alloca((argument_count + 1) * sizeof(char*)));  \
  va_start(list, first);                                                                 \
  if ((first) != nullptr)                                                                \
    cairn::take_arguments(first, list, arguments);                                       \
  else                                                                                   \
    arguments[0] = nullptr

CAIRN_HOOK(int, execve, (const char* path, char* const* arguments, char* const* environment)) {
  return cairn::start_path(path, arguments, environment);
}

CAIRN_HOOK(int, execv, (const char* path, char* const* arguments)) {
  return cairn::start_path(path, arguments, environ);
}

CAIRN_HOOK(int, execvp, (const char* file, char* const* arguments)) {
  return cairn::start_searched(file, arguments, environ);
}

CAIRN_HOOK(int, execvpe, (const char* file, char* const* arguments, char* const* environment)) {
  return cairn::start_searched(file, arguments, environment);
}

CAIRN_HOOK(int, execl, (const char* path, const char* first, ...)) {
  CAIRN_TAKE_ARGUMENTS(first);
  va_end(list);
  return cairn::start_path(path, arguments, environ);
}

CAIRN_HOOK(int, execlp, (const char* file, const char* first, ...)) {
  CAIRN_TAKE_ARGUMENTS(first);
  va_end(list);
  return cairn::start_searched(file, arguments, environ);
}

CAIRN_HOOK(int, execle, (const char* path, const char* first, ...)) {
  CAIRN_TAKE_ARGUMENTS(first);
  char* const* environment = va_arg(list, char* const*);
  va_end(list);
  return cairn::start_path(path, arguments, environment);
}

CAIRN_HOOK(int, execveat,
           (int directory, const char* path, char* const* arguments, char* const* environment,
            int flags)) {
  return cairn::start_program({.directory = directory, .path = path, .flags = flags}, environment,
                              [&](char* const* prepared) {
                                return cairn::real::execveat(directory, path, arguments, prepared,
                                                             flags);
                              });
}

CAIRN_HOOK(int, fexecve, (int fd, char* const* arguments, char* const* environment)) {
  return cairn::start_program(
      {.directory = fd, .path = "", .flags = AT_EMPTY_PATH}, environment,
      [&](char* const* prepared) { return cairn::real::fexecve(fd, arguments, prepared); });
}
