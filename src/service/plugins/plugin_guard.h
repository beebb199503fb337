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
#include "cairn/predictor_plugin.h"

namespace cairn {

// Each function is null or zero when the plugin threw, and says what in `thrown`.
struct PluginGuard {
  static constexpr const char* kEntryPoint = "cairn_plugin_guard";

  // The entry point of a kind of plugins.
  template <typename Description>
  using Entry = const Description* (*)();
  using Solve = decltype(cairn_placement_policy::solve);
  // Where what was thrown is described; empty: nothing was.
  struct Thrown {
    char text[256] = "";
  };
  // The problem for a placement policy.
  struct Problem {
    const cairn_tier_view* tiers = nullptr;
    std::uint32_t tier_count = 0;
    const cairn_placement_request* request = nullptr;
  };
  // One trip to a predictor: all that was read, then what comes next.
  struct Question {
    void* state = nullptr;
    cairn_read_stream stream{};
    const cairn_block_run* reads = nullptr;
    std::size_t read_count = 0;
    cairn_block_run* next = nullptr;
    std::uint32_t next_max = 0;
  };

  const cairn_placement_policy* (*describe_policy)(Entry<cairn_placement_policy> entry,
                                                   Thrown* thrown);
  int (*solve)(Solve solve, const Problem& problem, cairn_placement* answer, Thrown* thrown);

  const cairn_predictor* (*describe_predictor)(Entry<cairn_predictor> entry, Thrown* thrown);
  void* (*create)(const cairn_predictor& predictor, const cairn_read_stream& stream,
                  Thrown* thrown);
  void (*destroy)(const cairn_predictor& predictor, void* state, Thrown* thrown);
  std::uint32_t (*foresee)(const cairn_predictor& predictor, const Question& question,
                           Thrown* thrown);
};

}  // namespace cairn

// Defined by the guard.
extern "C" const cairn::PluginGuard* cairn_plugin_guard();
