// SPDX-License-Identifier: Apache-2.0
// The page that tells a process from its forked child: the kernel wipes it on fork
// (MADV_WIPEONFORK), however the fork came about, so all that the child finds here is its own or
// zero.
//
// Drawn:  epoch 0: not attached;  epoch n: attached, threads whose state carries n have an actor.
// A vfork child shares the page with its suspended parent, and works under the parent's name.
//
// Thread safety: atomics and locks. Ownership: static, never destroyed.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "frontends/client/local_lock.h"
#include "memory/tiers/actor.h"

namespace cairn {

enum class ProcessLock : unsigned {
  kAttach = 0,
  kOpenFiles,
  kLockedObjects,
  kMappings,
  kAio,
  kAioContexts,
  kTwins,
  kExec,
  kStdio,
  kKernelFiles,
  kSpawn,
  kLedger,
  kDescriptors,
  kTransit,
  kCount
};

// How a process that is not attached stands to its node.
//
//   kUnknown   nobody has asked it yet, or it did not answer, or has died: calls that need it fail
//   kUnserved  it lives, and cannot take the process, whose files go into its ledger
//   kOutside   it is another user's: the process counts as a program that cannot be intercepted
//   kEnded     there is none any more, and everything is stored
enum class Standing : std::uint32_t { kUnknown = 0, kUnserved, kOutside, kEnded };

struct alignas(4096) ProcessPage {
  std::atomic<std::uint32_t> epoch;
  std::atomic<Standing> standing;
  std::atomic<std::uint32_t> silent_ms;  // when the node last failed to answer (coarse); 0: never
  std::atomic<std::uint32_t> owner_bits;
  std::atomic<std::int32_t> pid;         // whose page this is; 0 in a child that libc did not fork
  std::atomic<std::uint32_t> is_primed;  // this process has written here: 0 in a fresh child
  LocalLock locks[static_cast<unsigned>(ProcessLock::kCount)];
};
static_assert(sizeof(ProcessPage) == 4096, "the kernel wipes whole pages");
static_assert(sizeof(LocalLock) == sizeof(std::uint32_t), "a wiped lock is a free one");
static_assert(static_cast<std::uint32_t>(Standing::kUnknown) == 0, "a wiped page knows nothing");
static_assert(std::atomic<Standing>::is_always_lock_free, "signal handlers read the page");
static_assert(std::is_trivially_destructible_v<ProcessPage>, "code runs after static destructors");

extern constinit ProcessPage process_page;

// Has the kernel wipe the page in every child forked from here on. Cheap when it does already.
void wipe_page_on_fork();

// True in a vfork child, which shares our memory but not our descriptors: it may change the
// kernel's table only.
bool is_vfork_child();

inline LocalLock& process_lock(ProcessLock which) {
  return process_page.locks[static_cast<unsigned>(which)];
}

// A thread needs this on every call and reaches it without a function call.
struct ThreadState {
  std::uint32_t epoch = UINT32_MAX;
  Actor actor;
};
extern constinit thread_local ThreadState thread_state;

}  // namespace cairn
