// SPDX-License-Identifier: Apache-2.0
// A placement policy whose behaviour the request's sequence number picks. With other definitions it
// is of another version, has no name, or misbehaves as soon as it is loaded.
//
// Thread safety: no state.
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

#include "cairn/policy_plugin.h"

#ifndef PLUGIN_VERSION
#define PLUGIN_VERSION CAIRN_POLICY_ABI_VERSION
#endif
#ifndef PLUGIN_NAME
#define PLUGIN_NAME "moody"
#endif
#ifndef PLUGIN_SOLVE
#define PLUGIN_SOLVE solve
#endif

namespace {

// The numbers of misbehaving_plugins_test.cc.
enum Mood : std::uint64_t {
  kGood,
  kThrowsError,
  kThrowsNumber,
  kLoops,
  kIsSlow,
  kOverfills,
  kFails,
  kCountsTooFar,
  kInventsTiers,
  kInventsSteps
};

[[noreturn]] void loop() {
  volatile unsigned turns = 0;
  for (;;) turns = turns + 1;
}

[[maybe_unused]] int solve(const cairn_tier_view* tiers, std::uint32_t tier_count,
                           const cairn_placement_request* request, cairn_placement* answer) {
  if (tier_count == 0) return 0;
  // Good: all of it in the last tier, as no member of the table does.
  answer->steps[0] = {CAIRN_PLACEMENT_PLACE, tiers[tier_count - 1].id, request->bytes};
  answer->count = 1;
  switch (request->sequence) {
    case kThrowsError:
      throw std::runtime_error("out of ideas");
    case kThrowsNumber:
      throw 42;
    case kLoops:
      loop();
    case kIsSlow:
      usleep(300'000);
      break;
    case kOverfills:
      answer->steps[0].bytes = tiers[tier_count - 1].capacity_bytes + 1;
      break;
    case kFails:
      return 7;
    case kCountsTooFar:
      answer->count = 1000;
      break;
    case kInventsTiers:
      answer->steps[0].tier = 77;
      break;
    case kInventsSteps:
      answer->steps[0].kind = 9;
      break;
    default:
      break;
  }
  return 0;
}

}  // namespace

const cairn_placement_policy* cairn_placement_policy_v1() {
#ifdef PLUGIN_THROWS_AT_ONCE
  throw std::runtime_error("no policy today");
#endif
#ifdef PLUGIN_LOOPS_AT_ONCE
  loop();
#endif
  static const cairn_placement_policy kPolicy = {PLUGIN_VERSION, CAIRN_PLAN_PER_BLOCK, PLUGIN_NAME,
                                                 PLUGIN_SOLVE};
  return &kPolicy;
}
