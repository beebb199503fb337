// SPDX-License-Identifier: Apache-2.0
// The start of the library in a program: it reads the environment and meets inherited descriptors.
#include "frontends/posix/startup.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/leading_number.h"
#include "base/test_capacities.h"
#include "frontends/client/session.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/posix_locks.h"
#include "frontends/descriptors/reading_descriptor.h"
#include "frontends/files/file_inheritance.h"
#include "frontends/files/kernel_files.h"
#include "frontends/libc/hook.h"
#include "frontends/paths/file_handling.h"
#include "frontends/paths/path_filter.h"
#include "frontends/posix/inherit.h"
#include "frontends/posix/process.h"
#include "frontends/posix/signal_calls.h"
#include "frontends/stdio/streams.h"
#include "memory/backing/posix_backing.h"
#include "memory/backing/size_limit.h"

namespace cairn {
namespace {

void leave_thread(void*) { Session::instance().leave_thread(); }

// A broken invariant must not kill a user's job: the library takes no new files and goes on.
void note_failed_check(const char*, const char*, int) {
  process_page.standing.store(Standing::kUnserved, std::memory_order_relaxed);
}

pthread_key_t thread_exit_key;

void watch_thread(const void* state) { pthread_setspecific(thread_exit_key, state); }

// Whether the program had been running when it loaded this library. One that is preloaded stands
// before libc in the list of the dynamic linker.
bool is_late() {
  dl_find_object own;
  if (_dl_find_object(reinterpret_cast<void*>(&watch_thread), &own) != 0) return false;
  const link_map* map = own.dlfo_link_map;
  while (map != nullptr && strstr(map->l_name, "/libc.so") == nullptr) map = map->l_next;
  return map == nullptr;
}

// All of a start but the descriptors that the process has inherited.
void configure_process(const char* socket_path) {
  set_check_handler(note_failed_check);
  const char* run = getenv("CAIRN_RUN");
  Session::begin_process();
  Session& session = Session::instance();
  const std::uint32_t run_number = run == nullptr ? 0 : leading_number(run, 10);
  session.configure(socket_path, run_number);
  guard_against_faults();
  FileHandling::configure(getenv("CAIRN_HANDLING"), run_number);
  session.set_child_handler(take_over_holds);
  session.set_lock_probe(PosixLocks::is_locked);
  PosixBacking::open_to_read_with({open_to_read, close_after_reading});
  if (pthread_key_create(&thread_exit_key, leave_thread) == 0)
    session.set_thread_handler(watch_thread);
  PathFilter::configure(getenv("CAIRN_BUFFER"), getenv("CAIRN_EXCLUDE"));
  DescriptorTable::set_limit(
      static_cast<int>(capacity_of("descriptors", DescriptorTable::kDescriptorsMax)));
  KernelFiles::set_capacity(capacity_of("kernel-files", UINT32_MAX));
  read_size_limit();
  start_processes(environ);
}

}  // namespace

void start_session() {
  const char* socket_path = getenv("CAIRN_SOCKET");
  if (socket_path == nullptr || *socket_path == '\0' || getenv("CAIRN_BYPASS") != nullptr) return;
  // What the descriptors mean that it was started with, only the program knows by now.
  if (is_late()) return;
  configure_process(socket_path);
  start_streams();
  // Attaching waits for the first call that needs it: a program that never touches a managed file
  // pays nothing.
  inherit_descriptors(environ);
}

void join_late(const char* socket_path) {
  configure_process(socket_path);
  if (getenv("CAIRN_BUFFER") == nullptr) PathFilter::manage_everything();
}

}  // namespace cairn

// Runs when the dynamic linker has relocated the library, before main() and before other libraries'
// constructors that were loaded after it.
extern "C" __attribute__((constructor)) void cairn_start() {
  const cairn::ErrnoKeeper keeper;
  cairn::start_session();
}
