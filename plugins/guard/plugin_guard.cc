// SPDX-License-Identifier: Apache-2.0
// The catch clauses between the service and its plugins; src/service/plugins/plugin_guard.h says
// why they are in a shared object.
#include "service/plugins/plugin_guard.h"

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

template <typename Description>
const Description* describe(PluginGuard::Entry<Description> entry, PluginGuard::Thrown* thrown) {
  const Description* none = nullptr;
  return guarded([&] { return entry(); }, none, thrown);
}

int solve(PluginGuard::Solve function, const PluginGuard::Problem& problem, cairn_placement* answer,
          PluginGuard::Thrown* thrown) {
  const auto call = [&] {
    return function(problem.tiers, problem.tier_count, problem.request, answer);
  };
  return guarded(call, -1, thrown);
}

void* create(const cairn_predictor& predictor, const cairn_read_stream& stream,
             PluginGuard::Thrown* thrown) {
  void* none = nullptr;
  return guarded([&] { return predictor.create(&stream); }, none, thrown);
}

void destroy(const cairn_predictor& predictor, void* state, PluginGuard::Thrown* thrown) {
  const auto call = [&] {
    predictor.destroy(state);
    return 0;
  };
  (void)guarded(call, 0, thrown);
}

std::uint32_t foresee(const cairn_predictor& predictor, const PluginGuard::Question& question,
                      PluginGuard::Thrown* thrown) {
  const auto call = [&] {
    for (std::size_t at = 0; at < question.read_count; ++at)
      predictor.observe(question.state, &question.reads[at]);
    return predictor.predict(question.state, &question.stream, question.next, question.next_max);
  };
  return guarded(call, 0U, thrown);
}

constexpr PluginGuard kGuard = {
    describe<cairn_placement_policy>, solve, describe<cairn_predictor>, create, destroy, foresee};

}  // namespace
}  // namespace cairn

extern "C" __attribute__((visibility("default"))) const cairn::PluginGuard* cairn_plugin_guard() {
  return &cairn::kGuard;
}
