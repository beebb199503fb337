// SPDX-License-Identifier: Apache-2.0
// Whether a program that is about to run will load the preload library.
//
//   interceptable   dynamically linked against glibc: LD_PRELOAD works
//   foreign         static, Go, another C library or architecture, or gaining privileges: it sees
//                   only the kernel's files
//
// A script is as its interpreter is; the chain of "#!" lines is followed as the kernel follows it.
// What cannot be read (execute permission only, or not there at all) counts as interceptable: the
// kernel decides about it later.
//
// Thread safety: any thread; also in a vfork child (no allocation, system calls only).
#pragma once

#include <cstdint>

namespace cairn {

enum class ForeignReason : std::uint8_t {
  kNone = 0,   // interceptable
  kStatic,     // no program interpreter
  kGo,         // the Go runtime makes its own system calls
  kOtherLibc,  // an interpreter that is not glibc's
  kOtherArchitecture,
  kOtherUser,   // no longer the user whose node it is: the node would refuse it
  kOtherRoot,   // below the root directory that it will have the library or the node is not there
  kPrivileged,  // set-user-id, set-group-id or file capabilities: the loader ignores LD_PRELOAD
};

struct ProgramProbe {
  ForeignReason foreign = ForeignReason::kNone;
  bool is_script = false;
};

// Called for the program and for every interpreter script on the way to it, before its bytes are
// read.
using BeforeProbe = void (*)(int fd);

// `flags` are execveat's (AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW).
ProgramProbe probe_program(int directory, const char* path, int flags, BeforeProbe before);

const char* text_of(ForeignReason reason);

}  // namespace cairn
