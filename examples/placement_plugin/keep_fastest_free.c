/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An example of a placement policy in a shared object: it keeps half of the fastest tier for small
 * writes. Each request goes to the fastest tier that takes all of it, or is divided, fastest first.
 *
 * Thread safety: no state.
 */
#include "cairn/policy_plugin.h"

static const uint64_t small_bytes = 1u << 20;
static const uint64_t block_bytes = 64u << 10;

static uint64_t room_in(const struct cairn_tier_view* tier, int is_first, uint64_t bytes) {
  uint64_t kept = tier->reserve_bytes;
  if (is_first && bytes >= small_bytes) kept += tier->capacity_bytes / 2;
  return tier->free_bytes > kept ? tier->free_bytes - kept : 0;
}

static void place(struct cairn_placement* answer, const struct cairn_tier_view* tier,
                  uint64_t bytes) {
  struct cairn_placement_step* step = &answer->steps[answer->count++];
  step->kind = CAIRN_PLACEMENT_PLACE;
  step->tier = tier->id;
  step->bytes = bytes;
  answer->seconds += tier->latency + (double)bytes / tier->bandwidth;
}

static int solve(const struct cairn_tier_view* tiers, uint32_t tier_count,
                 const struct cairn_placement_request* request, struct cairn_placement* answer) {
  uint64_t left = request->bytes;
  int is_first = 1;
  for (uint32_t at = 0; at < tier_count && left > 0; ++at) {
    if (tiers[at].id < request->fastest) continue;
    uint64_t bytes = room_in(&tiers[at], is_first, request->bytes);
    is_first = 0;
    /* The last block may be a short one; the others are not divided. */
    bytes = bytes < left ? bytes - bytes % block_bytes : left;
    if (bytes == 0) continue;
    place(answer, &tiers[at], bytes);
    left -= bytes;
  }
  return 0;
}

const struct cairn_placement_policy* cairn_placement_policy_v1(void) {
  static const struct cairn_placement_policy policy = {CAIRN_POLICY_ABI_VERSION, CAIRN_PLAN_WINDOW,
                                                       "keep-fastest-free", solve};
  return &policy;
}
