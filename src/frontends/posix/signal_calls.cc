// SPDX-License-Identifier: Apache-2.0
// sigaction() and signal(): handlers of the application are called through a wrapper that keeps
// them out while their thread holds locks of the buffer (base/signal_gate.h).
//
// SIGSEGV and SIGBUS have the wrapper even where the application has no handler, because a bad
// address in a read or write is to be an error of the call (base/user_copy.h). Every other fault
// goes the way it goes natively: to the application's handler, with its flags, or to the default
// action with the siginfo and the registers of the fault.
//
// The other signals that a thread itself causes (SIGILL and its like) are not wrapped: they cannot
// wait.
#include "frontends/posix/signal_calls.h"

#include <errno.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "base/signal_gate.h"
#include "base/system_call.h"
#include "base/user_copy.h"
#include "frontends/client/session.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(int, const struct sigaction*, struct sigaction*)> sigaction{"sigaction"};
constinit RealCall<int(int, int)> siginterrupt{"siginterrupt"};
}  // namespace
}  // namespace real

namespace {

constexpr int kSignals = 64;

// The action that the application wants, in one word, so that a handler sees all of it or nothing:
// the address (0 for the default action), and whether it takes three arguments and is to be called
// once only.
constexpr std::uint64_t kTakesInfo = std::uint64_t{1} << 63;
constexpr std::uint64_t kOnce = std::uint64_t{1} << 62;
// Not set where the wrapper is there although nobody asked for anything.
constexpr std::uint64_t kAsked = std::uint64_t{1} << 61;
constexpr std::uint64_t kAddress = kAsked - 1;
static_assert(kAddress >= (std::uint64_t{1} << 57) - 1, "an address of user space");
static_assert(((kTakesInfo | kOnce | kAsked) & kAddress) == 0);
constinit std::atomic<std::uint64_t> asked_for[kSignals + 1] = {};
// siginterrupt() was called for these: bit n-1 for signal n.
constinit std::atomic<std::uint64_t> interrupting{0};
static_assert(kSignals <= 64, "a signal has a bit");

constexpr std::uint64_t bit_of(int signal) { return std::uint64_t{1} << (signal - 1); }

bool is_caused_by_thread(int signal) {
  switch (signal) {
    case SIGILL:
    case SIGFPE:
    case SIGTRAP:
    case SIGSYS:
    case SIGABRT:
      return true;
    default:
      return false;
  }
}

// The signals of memory that is not there.
bool is_guarded(int signal) { return signal == SIGSEGV || signal == SIGBUS; }

// Whether the instruction at which the thread is has raised the signal: it was not sent by anybody,
// and cannot wait.
bool is_fault(int signal, const siginfo_t& info) {
  return is_guarded(signal) && info.si_code > 0 &&
         !(signal == SIGBUS && info.si_code == BUS_MCEERR_AO);
}

void queue_again(int signal, siginfo_t* info) {
  sys::call(SYS_rt_tgsigqueueinfo, sys::getpid(), sys::gettid(), signal, sys::word(info));
}

// Back into the queue of this thread, blocked until the gate opens. The interrupted code's mask is
// what the kernel restores when the wrapper returns.
void defer(int signal, siginfo_t* info, void* context) {
  CAIRN_DCHECK(signal_gate.held != 0);
  auto* interrupted = static_cast<ucontext_t*>(context);
  sigaddset(&interrupted->uc_sigmask, signal);
  signal_gate.deferred |= bit_of(signal);
  queue_again(signal, info);
}

void set_default(int signal) {
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  real::sigaction(signal, &standard, nullptr);
}

// The program ends as it does without a handler: the signal, which is blocked while we are here,
// comes again as soon as the registers are those of the fault. Should the queue be full, the
// instruction faults once more.
void end_by_default(int signal, siginfo_t* info) {
  set_default(signal);
  queue_again(signal, info);
}

// The application's handler is gone after this call.
void forget_handler(int signal, std::uint64_t asked) {
  if (is_guarded(signal)) {
    asked_for[signal].store(asked & ~kAddress, std::memory_order_release);
  } else {
    set_default(signal);
  }
}

void on_signal(int signal, siginfo_t* info, void* context) {
  if (is_fault(signal, *info)) {
    if (recover_from_fault(context)) return;
  } else if (signal_gate.held != 0) {
    const ErrnoKeeper keeper;
    defer(signal, info, context);
    return;
  }
  const std::uint64_t asked = asked_for[signal].load(std::memory_order_acquire);
  const std::uint64_t address = asked & kAddress;
  if (address == 0) {
    if (is_guarded(signal)) end_by_default(signal, info);
    return;
  }
  if ((asked & kOnce) != 0) forget_handler(signal, asked);
  if ((asked & kTakesInfo) != 0) {
    reinterpret_cast<void (*)(int, siginfo_t*, void*)>(address)(signal, info, context);
  } else {
    reinterpret_cast<void (*)(int)>(address)(signal);
  }
}

bool is_wrapped(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_signal;
}

std::uint64_t pack(const struct sigaction& action) {
  const bool takes_info = (action.sa_flags & SA_SIGINFO) != 0;
  const auto address = takes_info ? reinterpret_cast<std::uint64_t>(action.sa_sigaction)
                                  : reinterpret_cast<std::uint64_t>(action.sa_handler);
  const bool once = (static_cast<unsigned>(action.sa_flags) & SA_RESETHAND) != 0;
  return kAsked | address | (takes_info ? kTakesInfo : 0) | (once ? kOnce : 0);
}

// The action as the application set it.
void unwrap(std::uint64_t asked, struct sigaction* action) {
  const std::uint64_t address = asked & kAddress;
  if ((asked & kTakesInfo) != 0) {
    action->sa_sigaction = reinterpret_cast<void (*)(int, siginfo_t*, void*)>(address);
  } else {
    action->sa_flags &= ~SA_SIGINFO;
    action->sa_handler = reinterpret_cast<void (*)(int)>(address);
  }
  if ((asked & kOnce) != 0) action->sa_flags |= static_cast<int>(SA_RESETHAND);
  if ((asked & kAsked) == 0) action->sa_flags = 0;
}

int set_action(int signal, const struct sigaction* wanted, struct sigaction* before) {
  if (signal < 1 || signal > kSignals || is_caused_by_thread(signal) ||
      !Session::instance().is_configured()) {
    return real::sigaction(signal, wanted, before);
  }
  const std::uint64_t old = asked_for[signal].load(std::memory_order_acquire);
  struct sigaction wrapped;
  const struct sigaction* passed = wanted;
  // A vfork child has actions of its own but shares the table: its handlers stay as they are.
  const bool is_ours = wanted != nullptr && wanted->sa_handler != SIG_IGN &&
                       (wanted->sa_handler != SIG_DFL || is_guarded(signal)) && !is_vfork_child();
  if (is_ours) {
    wrapped = *wanted;
    wrapped.sa_flags =
        (wanted->sa_flags | SA_SIGINFO) & ~static_cast<int>(SA_RESETHAND);  // done by the wrapper
    wrapped.sa_sigaction = on_signal;
    passed = &wrapped;
    asked_for[signal].store(pack(*wanted), std::memory_order_release);
  }
  struct sigaction seen = {};
  const int result = real::sigaction(signal, passed, &seen);
  if (result != 0) {
    if (is_ours) asked_for[signal].store(old, std::memory_order_release);
    return result;
  }
  if (before != nullptr) {
    *before = seen;
    if (is_wrapped(seen)) unwrap(old, before);
  }
  return 0;
}

using Handler = void (*)(int);

Handler set_handler(int signal, Handler handler, int flags) {
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  if (handler == SIG_ERR || signal < 1 || signal > kSignals) {
    errno = EINVAL;
    return SIG_ERR;
  }
  sigemptyset(&action.sa_mask);
  // As BSD has it: the signal is blocked while its handler runs.
  if ((flags & SA_NODEFER) == 0) sigaddset(&action.sa_mask, signal);
  return set_action(signal, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

}  // namespace

void guard_against_faults() {
  for (const int signal : {SIGSEGV, SIGBUS}) {
    struct sigaction now = {};
    if (real::sigaction(signal, nullptr, &now) != 0) continue;
    // A process that ignores the signal passes that on to the programs that it starts.
    if (now.sa_handler == SIG_IGN || is_wrapped(now)) continue;
    set_action(signal, &now, nullptr);
    if (now.sa_handler == SIG_DFL) asked_for[signal].store(0, std::memory_order_release);
  }
}

}  // namespace cairn

CAIRN_HOOK(int, sigaction, (int signal, const struct sigaction* wanted, struct sigaction* before)) {
  return cairn::set_action(signal, wanted, before);
}
CAIRN_TWIN(sigaction, __sigaction);

CAIRN_HOOK(cairn::Handler, signal, (int signal, cairn::Handler handler)) {
  const bool interrupts = signal >= 1 && signal <= cairn::kSignals &&
                          (cairn::interrupting.load() & cairn::bit_of(signal)) != 0;
  return cairn::set_handler(signal, handler, interrupts ? 0 : SA_RESTART);
}
CAIRN_TWIN(signal, bsd_signal);
CAIRN_TWIN(signal, ssignal);

CAIRN_HOOK(cairn::Handler, sysv_signal, (int signal, cairn::Handler handler)) {
  return cairn::set_handler(signal, handler, static_cast<int>(SA_RESETHAND) | SA_NODEFER);
}
CAIRN_TWIN(sysv_signal, __sysv_signal);

CAIRN_HOOK(int, siginterrupt, (int signal, int interrupts)) {
  const int result = cairn::real::siginterrupt(signal, interrupts);
  if (result == 0 && interrupts != 0) cairn::interrupting.fetch_or(cairn::bit_of(signal));
  if (result == 0 && interrupts == 0) cairn::interrupting.fetch_and(~cairn::bit_of(signal));
  return result;
}
