// SPDX-License-Identifier: Apache-2.0
#include "frontends/posix/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include "base/signal_gate.h"
#include "base/system_call.h"
#include "frontends/client/session.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/descriptors/open_file_pool.h"
#include "frontends/descriptors/placeholder.h"
#include "frontends/files/file_closing.h"
#include "frontends/files/kernel_files.h"
#include "frontends/files/mappings.h"
#include "frontends/files/transit_holds.h"
#include "frontends/files/unheld_files.h"
#include "frontends/files/unserved_descriptors.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/posix/aio_threads.h"
#include "frontends/posix/exec_plan.h"
#include "frontends/processes/launch_environment.h"
#include "memory/backing/size_limit.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(int, int)> daemon{"daemon"};
constinit RealCall<int(int)> login_tty{"login_tty"};
constinit RealCall<pid_t(int*, char*, const termios*, const winsize*)> forkpty{"forkpty"};
constinit RealCall<int(__rlimit_resource_t, const rlimit*)> setrlimit{"setrlimit"};
constinit RealCall<int(pid_t, __rlimit_resource, const rlimit*, rlimit*)> prlimit{"prlimit"};
constinit RealCall<int(const char*)> system{"system"};
}  // namespace
}  // namespace real

namespace {

// Attaching takes a few descriptors; later there may be none left.
void attach_before_limit(__rlimit_resource_t resource) {
  const ErrnoKeeper keeper;
  Session& session = Session::instance();
  if (resource == RLIMIT_NOFILE && session.is_configured()) session.attach();
}

// libc has put other files at the standard descriptors behind our back.
void check_standard_descriptors() {
  const ErrnoKeeper keeper;
  for (int fd = 0; fd <= 2; ++fd) {
    const OpenFile* file = DescriptorTable::find(fd);
    if (file != nullptr && file->private_fd() != fd && !is_placeholder(fd)) forget_tracked(fd);
  }
}

// As libc's system(), with a start that passes our descriptors on: the caller ignores SIGINT and
// SIGQUIT and blocks SIGCHLD while the command runs.
int run_command(const char* command) {
  struct sigaction ignore = {};
  struct sigaction old_interrupt;
  struct sigaction old_quit;
  ignore.sa_handler = SIG_IGN;
  sigset_t blocked;
  sigset_t old_mask;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  ::sigaction(SIGINT, &ignore, &old_interrupt);
  ::sigaction(SIGQUIT, &ignore, &old_quit);
  ::sigprocmask(SIG_BLOCK, &blocked, &old_mask);

  sigset_t defaults;
  sigemptyset(&defaults);
  if (old_interrupt.sa_handler != SIG_IGN) sigaddset(&defaults, SIGINT);
  if (old_quit.sa_handler != SIG_IGN) sigaddset(&defaults, SIGQUIT);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &old_mask);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  char shell[] = "sh";
  char option[] = "-c";
  char* const arguments[] = {shell, option, const_cast<char*>(command), nullptr};
  pid_t child = -1;
  const int error = ::posix_spawn(&child, "/bin/sh", nullptr, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  int status = -1;
  if (error == 0) {
    while (::waitpid(child, &status, 0) < 0) {
      if (errno == EINTR) continue;
      status = -1;
      break;
    }
  } else {
    constexpr int kNotStarted = 127;
    status = kNotStarted << 8;
  }
  const int saved = error != 0 ? error : errno;
  ::sigaction(SIGINT, &old_interrupt, nullptr);
  ::sigaction(SIGQUIT, &old_quit, nullptr);
  ::sigprocmask(SIG_SETMASK, &old_mask, nullptr);
  if (status == -1 || error != 0) errno = saved;
  return status;
}

// The loader reads the library through the kernel.
void store_library(const char* path) {
  if (path == nullptr || strchr(path, '/') == nullptr || !Session::instance().has_memory()) return;
  const ErrnoKeeper keeper;
  const int fd = sys::openat(AT_FDCWD, path, O_PATH | O_CLOEXEC);
  if (fd < 0) return;
  store_before_use(fd);
  sys::close(fd);
}

constinit RealCall<void*(const char*, int)> real_dlopen{"dlopen"};
constinit RealCall<void*(Lmid_t, const char*, int)> real_dlmopen{"dlmopen"};

}  // namespace

// The child may come to life after the parent has closed its descriptors: a hold in transit bridges
// the gap.
void make_transit_holds() {
  Session& session = Session::instance();
  if (!DescriptorTable::any() || !session.is_attached()) return;
  DescriptionTable& descriptions = session.memory().descriptions();
  const Owner self = session.self();
  const pid_t child = TransitHolds::unborn();
  DescriptorTable::for_each([&](int, OpenFile& file) {
    file.backing->note_shared();
    if (file.transit == HoldIndex::kNone) {
      file.transit = descriptions.hold(file.index, self, HoldKind::kDescriptionInTransit);
      if (file.transit != HoldIndex::kNone) TransitHolds::note(file.transit, child);
    }
    // Where that cannot be said either, the child finds a descriptor that answers EBADF.
    if (file.transit == HoldIndex::kNone) (void)share_unheld(file);
  });
}

void before_fork() {
  const ErrnoKeeper keeper;
  TransitHolds::settle();
  TransitHolds::forget_unborn();  // of a fork whose result the library has not seen
  process_lock(ProcessLock::kSpawn).lock();
  // The child gets mappings and the list of them as they are at one moment.
  process_lock(ProcessLock::kMappings).lock();
  // The same of records and their holds in transit: a close() that took a record out between the
  // hold and the fork would leave the hold to nobody.
  DescriptorTable::freeze();
  make_transit_holds();
  // The same of twins and their numbers: the kernel copies descriptors before memory.
  process_lock(ProcessLock::kTwins).lock();
}

void after_fork_in_parent() {
  process_lock(ProcessLock::kTwins).unlock();
  DescriptorTable::for_each([](int, OpenFile& file) { file.transit = HoldIndex::kNone; });
  DescriptorTable::thaw();
  process_lock(ProcessLock::kMappings).unlock();
  process_lock(ProcessLock::kSpawn).unlock();
}

// The hook of fork() says how it went, where there is one.
void after_libcs_fork_in_parent() {
  after_fork_in_parent();
  const ErrnoKeeper keeper;
  TransitHolds::give_up_unborn_if_childless();
}

void name_child_of_fork(pid_t child) {
  const ErrnoKeeper keeper;
  TransitHolds::name_child(child);
}

void recount_records() {
  OpenFilePool::for_each([](OpenFile& file) { file.count.begin_recount(); });
  DescriptorTable::for_each([](int, OpenFile& file) {
    if (!file.count.add_descriptor()) file.count.begin();
  });
  OpenFilePool::for_each([](OpenFile& file) {
    if (file.count.end_recount()) drop_in_child(file);
  });
}

// At once and not at the child's first call, because the parent may end any time. The lock was
// wiped with its page.
void after_fork_in_child() {
  const ErrnoKeeper keeper;
  Session::begin_process();
  TransitHolds::forget_all();
  DescriptorTable::begin_child();
  recount_records();
  begin_child_without_aio();
  signal_gate.held = 0;  // the locks that were held around the fork are the parent's
  const bool has_files = DescriptorTable::any() || KernelFiles::any() || Mappings::any();
  if (has_files && Session::instance().actor_if_any() == nullptr) keep_inherited_through();
}

void start_processes(char** environment) {
  // dladdr() would look through all symbols for the nearest one.
  dl_find_object library;
  if (_dl_find_object(reinterpret_cast<void*>(&start_processes), &library) == 0)
    LaunchEnvironment::remember(environment, library.dlfo_link_map->l_name);
  pthread_atfork(before_fork, after_libcs_fork_in_parent, after_fork_in_child);
}

}  // namespace cairn

// The loader's search depends on its caller (RUNPATH, namespaces), so the hooks store the library
// and then jump: libc sees the application's return address.
extern "C" __attribute__((visibility("hidden"), used)) void* cairn_prepare_dlopen(
    const char* path) {
  cairn::store_library(path);
  return reinterpret_cast<void*>(cairn::real_dlopen.get());
}
extern "C" __attribute__((visibility("hidden"), used)) void* cairn_prepare_dlmopen(
    long, const char* path) {
  cairn::store_library(path);
  return reinterpret_cast<void*>(cairn::real_dlmopen.get());
}

#if defined(__x86_64__)
#define CAIRN_JUMP_HOOK(symbol)                                                           \
  __asm__(".pushsection .text\n.globl " #symbol "\n.type " #symbol ",@function\n" #symbol \
          ":\n"                                                                           \
          "  pushq %rdi\n"                                                                \
          "  pushq %rsi\n"                                                                \
          "  pushq %rdx\n"                                                                \
          "  call cairn_prepare_" #symbol                                                 \
          "\n"                                                                            \
          "  popq %rdx\n"                                                                 \
          "  popq %rsi\n"                                                                 \
          "  popq %rdi\n"                                                                 \
          "  jmp *%rax\n"                                                                 \
          ".size " #symbol ",.-" #symbol "\n.popsection\n")
#else
#define CAIRN_JUMP_HOOK(symbol)                                                           \
  __asm__(".pushsection .text\n.globl " #symbol "\n.type " #symbol ",%function\n" #symbol \
          ":\n"                                                                           \
          "  stp x29, x30, [sp, #-48]!\n"                                                 \
          "  stp x0, x1, [sp, #16]\n"                                                     \
          "  str x2, [sp, #32]\n"                                                         \
          "  bl cairn_prepare_" #symbol                                                   \
          "\n"                                                                            \
          "  mov x16, x0\n"                                                               \
          "  ldp x0, x1, [sp, #16]\n"                                                     \
          "  ldr x2, [sp, #32]\n"                                                         \
          "  ldp x29, x30, [sp], #48\n"                                                   \
          "  br x16\n"                                                                    \
          ".size " #symbol ",.-" #symbol "\n.popsection\n")
#endif
CAIRN_JUMP_HOOK(dlopen);
CAIRN_JUMP_HOOK(dlmopen);

CAIRN_HOOK(int, daemon, (int stays, int keeps)) {
  const int result = cairn::real::daemon(stays, keeps);
  cairn::check_standard_descriptors();
  return result;
}

CAIRN_HOOK(int, login_tty, (int fd)) {
  const int result = cairn::real::login_tty(fd);
  cairn::check_standard_descriptors();
  return result;
}

CAIRN_HOOK(pid_t, forkpty, (int* master, char* name, const termios* modes, const winsize* size)) {
  const pid_t child = cairn::real::forkpty(master, name, modes, size);
  if (child == 0) cairn::check_standard_descriptors();
  if (child != 0) cairn::name_child_of_fork(child);
  return child;
}

CAIRN_HOOK(int, system, (const char* command)) {
  const bool is_ours =
      command != nullptr && cairn::LaunchEnvironment::is_member() && cairn::DescriptorTable::any();
  return is_ours ? cairn::run_command(command) : cairn::real::system(command);
}

// A write past the limit is the kernel's to refuse, so the limit has to be known.
CAIRN_HOOK(int, setrlimit, (__rlimit_resource_t resource, const rlimit* limit)) {
  cairn::attach_before_limit(resource);
  const int result = cairn::real::setrlimit(resource, limit);
  if (result == 0 && resource == RLIMIT_FSIZE) cairn::read_size_limit();
  return result;
}
CAIRN_TWIN(setrlimit, setrlimit64);

CAIRN_HOOK(int, prlimit,
           (pid_t process, __rlimit_resource resource, const rlimit* limit, rlimit* before)) {
  const int result = cairn::real::prlimit(process, resource, limit, before);
  if (result == 0 && limit != nullptr && resource == RLIMIT_FSIZE) cairn::read_size_limit();
  return result;
}
CAIRN_TWIN(prlimit, prlimit64);
