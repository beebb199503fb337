// SPDX-License-Identifier: Apache-2.0
// The page that tells a process from its forked child: the kernel wipes it on fork
// (MADV_WIPEONFORK), however the
// fork came about, so whatever the child finds here is its own or zero.
//
// Drawn:  epoch 0: not attached;  epoch n: attached, threads whose state carries n have an actor.
// A vfork child shares the page with its parent, who is suspended, and works under the parent's
// name.
//
// Thread safety: atomics and locks. Ownership: static, never destroyed.
#pragma once

#include <atomic>
#include <cstdint>

#include "client/local_lock.h"
#include "tiers/actor.h"

namespace cairn {

enum class ProcessLock : unsigned {
  kAttach = 0,
  kOpenFiles,
  kLockedObjects,
  kMappings,
  kAio,
  kAioContexts,
  kPrivateDescriptors,
  kExec,
  kStdio,
  kKernelFiles,
  kSpawn,
  kCount
};

struct alignas(4096) ProcessPage {
  std::atomic<std::uint32_t> epoch;
  std::atomic<std::uint32_t> is_refused;  // the node did not take us: not asked again
  std::atomic<std::uint32_t> owner_bits;
  std::atomic<std::int32_t> pid;         // whose page this is; 0 in a child that libc did not fork
  std::atomic<std::uint32_t> is_primed;  // this process has written here: 0 in a fresh child
  std::atomic<std::uint32_t> next_shard;
  LocalLock locks[static_cast<unsigned>(ProcessLock::kCount)];
};
static_assert(sizeof(ProcessPage) == 4096);

extern constinit ProcessPage process_page;

// True in a vfork child, which shares our memory but not our descriptors: it may change the
// kernel's table only.
bool is_vfork_child();

inline LocalLock& process_lock(ProcessLock which) {
  return process_page.locks[static_cast<unsigned>(which)];
}

// What a thread needs on every call, reachable without a function call.
struct ThreadState {
  std::uint32_t epoch = UINT32_MAX;
  Actor actor;
};
extern constinit thread_local ThreadState thread_state;

}  // namespace cairn
