// SPDX-License-Identifier: Apache-2.0
// What stands between the service and a plugin that throws: lib/cairn/plugin_guard.so
// (plugins/guard/), which calls into the plugin and catches.
//
// It is a shared object because the command carries a C++ runtime of its own (-static-libgcc), and
// an exception can only be caught by code that shares the unwinder of the code that threw it: a
// catch clause in the command aborts the process in _Unwind_SetGR() instead. The guard is linked as
// plugins are, with the system's libstdc++ and libgcc_s. No frame of the command may stand between
// its catch clause and the plugin.
//
// Thread safety: no state. Errors: a plugin that is linked with -static-libgcc itself must not let
// exceptions out, and neither may the constructors of a shared object: both end the process, and so
// does pthread_exit().
#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/policy_plugin.h"

namespace cairn {

struct PluginGuard {
  static constexpr const char* kEntryPoint = "cairn_plugin_guard";

  using Describe = decltype(&cairn_placement_policy_v1);
  using Solve = decltype(cairn_placement_policy::solve);
  // Where what was thrown is described; empty: nothing was.
  struct Thrown {
    char text[256] = "";
  };

  const cairn_placement_policy* (*describe)(Describe describe, Thrown* thrown);
  int (*solve)(Solve solve, const cairn_tier_view* tiers, std::uint32_t tier_count,
               const cairn_placement_request* request, cairn_placement* answer, Thrown* thrown);
};

}  // namespace cairn

// Defined by the guard.
extern "C" const cairn::PluginGuard* cairn_plugin_guard();
