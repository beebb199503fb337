// SPDX-License-Identifier: Apache-2.0
// The environment that makes a program a member of its run, and how it is passed on to the next
// program even when somebody cleans the environment.
//
// A variable that the new environment has keeps its value there: a `cairn run` inside a run starts
// its program for another node. With CAIRN_BYPASS set in the new environment nothing is passed on
// (the node service itself).
//
// Thread safety: remember() once at start; the rest from any thread and in a vfork child (no
// allocation).
#pragma once

#include <cstddef>

namespace cairn {

class LaunchEnvironment {
 public:
  // Keeps this process's CAIRN_* and preload settings. `library` is the path of this library.
  static void remember(char* const* environment, const char* library);
  static bool is_member();

  // The library and the node's socket are where a program that starts now will look for them: not
  // below another root directory or mount.
  static bool is_reachable();

  // Whether exec can read all of it; if not, the kernel refuses the start. Null is an empty one.
  static bool is_readable(char* const* environment);

  // The program that starts with `environment` is no longer to belong to this run: bypassed, or of
  // another node.
  static bool leaves_run(char* const* environment);

  // Bytes that build() needs at most, beside the table of inherited descriptors.
  static std::size_t build_bytes(char* const* environment);
  // A copy of `environment` in `scratch` (aligned for pointers) with our variables. `table` is the
  // text of CAIRN_FDS or null. With `without_library` our library is taken out of LD_PRELOAD: the
  // program could not load it.
  static char** build(char* const* environment, const char* table, bool without_library,
                      void* scratch);
};

// Whether the text can be read up to its terminating zero.
bool is_readable_text(const char* text);

// The value of `name` in `environment`, or null.
const char* find_variable(char* const* environment, const char* name);
// Removes `name` from `environment` in place.
void remove_variable(char** environment, const char* name);

}  // namespace cairn
