// SPDX-License-Identifier: Apache-2.0
// The calls by which a process makes children and hears of their end. libc's fork handlers do the
// work of a fork (process.h); here the library learns the child's number, and when to look whether
// it has ended before it took over what it was given.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system_call.h"
#include "frontends/files/transit_holds.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/posix/process.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<pid_t()> fork{"fork"};
constinit RealCall<pid_t(int*)> wait{"wait"};
constinit RealCall<pid_t(pid_t, int*, int)> waitpid{"waitpid"};
constinit RealCall<pid_t(int*, int, rusage*)> wait3{"wait3"};
constinit RealCall<pid_t(pid_t, int*, int, rusage*)> wait4{"wait4"};
constinit RealCall<int(idtype_t, id_t, siginfo_t*, int)> waitid{"waitid"};
}  // namespace
}  // namespace real

namespace {

template <typename Result>
Result settle_after(Result result) {
  const ErrnoKeeper keeper;
  TransitHolds::settle();
  return result;
}

}  // namespace
}  // namespace cairn

CAIRN_HOOK(pid_t, fork, ()) {
  const pid_t child = cairn::real::fork();
  if (child != 0) cairn::name_child_of_fork(child);
  return child;
}
CAIRN_TWIN(fork, __fork);

CAIRN_HOOK(pid_t, wait, (int* status)) { return cairn::settle_after(cairn::real::wait(status)); }
CAIRN_TWIN(wait, __wait);

CAIRN_HOOK(pid_t, waitpid, (pid_t process, int* status, int options)) {
  return cairn::settle_after(cairn::real::waitpid(process, status, options));
}
CAIRN_TWIN(waitpid, __waitpid);

CAIRN_HOOK(pid_t, wait3, (int* status, int options, rusage* usage)) {
  return cairn::settle_after(cairn::real::wait3(status, options, usage));
}

CAIRN_HOOK(pid_t, wait4, (pid_t process, int* status, int options, rusage* usage)) {
  return cairn::settle_after(cairn::real::wait4(process, status, options, usage));
}

CAIRN_HOOK(int, waitid, (idtype_t kind, id_t id, siginfo_t* info, int options)) {
  return cairn::settle_after(cairn::real::waitid(kind, id, info, options));
}
