// SPDX-License-Identifier: Apache-2.0
// The catch clauses between the service and its plugins; src/plugins/plugin_guard.h says why they
// are in a shared object.
#include "plugins/plugin_guard.h"

#include <cstdio>
#include <exception>
#include <utility>

namespace cairn {
namespace {

// Returns what `call` returns, or `otherwise` when it throws.
template <typename Call, typename Value>
Value guarded(Call&& call, Value otherwise, PluginGuard::Thrown* thrown) {
  try {
    return std::forward<Call>(call)();
  } catch (const std::exception& error) {
    std::snprintf(thrown->text, sizeof thrown->text, "an exception: %s", error.what());
  } catch (...) {
    std::snprintf(thrown->text, sizeof thrown->text, "an exception");
  }
  return otherwise;
}

const cairn_placement_policy* describe(PluginGuard::Describe function,
                                       PluginGuard::Thrown* thrown) {
  const cairn_placement_policy* none = nullptr;
  return guarded([&] { return function(); }, none, thrown);
}

int solve(PluginGuard::Solve function, const cairn_tier_view* tiers, std::uint32_t tier_count,
          const cairn_placement_request* request, cairn_placement* answer,
          PluginGuard::Thrown* thrown) {
  return guarded([&] { return function(tiers, tier_count, request, answer); }, -1, thrown);
}

constexpr PluginGuard kGuard = {describe, solve};

}  // namespace
}  // namespace cairn

extern "C" __attribute__((visibility("default"))) const cairn::PluginGuard* cairn_plugin_guard() {
  return &cairn::kGuard;
}
