// SPDX-License-Identifier: Apache-2.0
#include "frontends/posix/clone_calls.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/uio.h>

#include "base/system_call.h"
#include "frontends/client/other_threads.h"
#include "frontends/client/session.h"
#include "frontends/files/kernel_files.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/posix/process.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(int (*)(void*), void*, int, void*, void*, void*, void*)> clone{"clone"};
}  // namespace
}  // namespace real

namespace {

// The table of descriptors (descriptor_table.h) is in memory: it is right for processes that share
// both memory and descriptors, as threads do, and for those that share neither. A vfork child
// changes its descriptors only, while its parent waits (vfork_shadow.h).
bool splits_tables(unsigned long flags) {
  constexpr unsigned long kVfork = CLONE_VM | CLONE_VFORK;
  if ((flags & CLONE_THREAD) != 0) return false;
  if ((flags & CLONE_FILES) != 0) return true;
  return (flags & kVfork) == CLONE_VM;
}

struct Start {
  int (*run)(void*);
  void* argument;
};

// Does the work of libc's fork handlers for a fork by clone().
int run_in_child(void* start) {
  const Start copy = *static_cast<Start*>(start);
  after_fork_in_child();
  return copy.run(copy.argument);
}

}  // namespace

void before_clone(unsigned long flags) {
  const ErrnoKeeper keeper;
  if (__builtin_expect(splits_tables(flags), 0)) KernelFiles::yield_everything();
}

void before_unshare(unsigned long flags) {
  const ErrnoKeeper keeper;
  if ((flags & CLONE_FILES) != 0 && has_other_threads()) KernelFiles::yield_everything();
}

void before_clone3(const void* arguments, unsigned long size) {
  std::uint64_t flags = 0;
  if (size < sizeof flags) return;
  iovec into{&flags, sizeof flags};
  iovec from{const_cast<void*>(arguments), sizeof flags};
  const long got =
      sys::call(SYS_process_vm_readv, sys::getpid(), sys::word(&into), 1, sys::word(&from), 1, 0);
  // Where it may not be asked for, nothing is known: the worst.
  before_clone(got == static_cast<long>(sizeof flags) ? flags : CLONE_FILES);
}

}  // namespace cairn

CAIRN_HOOK(int, clone, (int (*run)(void*), void* stack, int flags, void* argument, ...)) {
  va_list list;
  va_start(list, argument);
  void* parent_tid = va_arg(list, void*);
  void* tls = va_arg(list, void*);
  void* child_tid = va_arg(list, void*);
  va_end(list);
  const auto bits = static_cast<unsigned long>(flags);
  cairn::before_clone(bits);
  const bool is_fork = (bits & (CLONE_VM | CLONE_FILES)) == 0 && run != nullptr;
  if (!is_fork) return cairn::real::clone(run, stack, flags, argument, parent_tid, tls, child_tid);
  // The child finds it on its copy of this stack.
  cairn::Start start{run, argument};
  cairn::before_fork();
  const int child =
      cairn::real::clone(cairn::run_in_child, stack, flags, &start, parent_tid, tls, child_tid);
  cairn::after_fork_in_parent();
  // The child of our parent is not ours to wait for.
  if (child < 0 || (bits & CLONE_PARENT) == 0) cairn::name_child_of_fork(child);
  return child;
}
CAIRN_TWIN(clone, __clone);
