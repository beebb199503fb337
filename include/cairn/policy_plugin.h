/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A placement policy in a shared object: the interface between it and the node service. Plain C.
 *
 * The object exports one function, cairn_placement_policy_v1(), which returns a description that
 * lives as long as the object is loaded. The service calls solve() on a thread of its own, one call
 * at a time. When a call takes longer than 50 ms, throws, reports a failure or answers what cannot
 * be carried out, the default policy answers instead, and the service's log says so; the service
 * does not call a policy again that does so three times in a row.
 *
 * Rules for the answers of solve():
 *   - Equal input gives an equal answer.
 *   - No step is for a tier above request->fastest.
 *   - Each tier has at most one step that makes room and one that places; those that make room come
 *     first.
 *   - A tier takes at most free_bytes - reserve_bytes plus the room made there.
 *   - A step moves no more than is in its tier, and no more than the tiers below have room for.
 *   - Blocks of 64 KiB are not divided.
 * Bytes that no step places go to the backing store.
 *
 * Thread safety: see above. Ownership: everything passed in belongs to the caller and is valid
 * during the call. Versions: a change of any structure is a new CAIRN_POLICY_ABI_VERSION and a new
 * name of the function.
 *
 * An example: examples/placement_plugin/.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAIRN_POLICY_ABI_VERSION 1u
#define CAIRN_POLICY_TIERS_MAX 8u
#define CAIRN_POLICY_STEPS_MAX 16u

/* The names are those of a C interface. NOLINTBEGIN(readability-identifier-naming) */
/* One tier. They come fastest first; ids ascend. */
struct cairn_tier_view {
  uint32_t id;
  uint32_t unused;
  uint64_t capacity_bytes;
  uint64_t free_bytes;
  uint64_t reserve_bytes; /* of the free bytes: to be left free */
  double bandwidth;       /* bytes per second of a write, measured */
  double latency;         /* seconds per access, measured */
  double hotness_min;     /* least hotness that belongs here; 0: any */
};

struct cairn_placement_request {
  uint64_t bytes;
  uint32_t fastest; /* no tier above this one */
  uint32_t unused;
  double store_bandwidth; /* of the backing store; 0: unknown */
  double store_latency;
  double move_share; /* part of the time of a move that the request waits for */
  uint64_t sequence; /* counts decisions */
  /* The unit that the request belongs to: a file or a region of one. */
  uint64_t unit_bytes;
  double unit_hotness; /* accesses per second and MiB; 0: unknown */
  uint64_t unit_resident_bytes[CAIRN_POLICY_TIERS_MAX]; /* by tier id */
};

enum cairn_placement_step_kind {
  CAIRN_PLACEMENT_MAKE_ROOM = 0, /* move so many bytes from the tier to those below */
  CAIRN_PLACEMENT_PLACE = 1      /* put so many bytes of the request into the tier */
};

struct cairn_placement_step {
  uint32_t kind;
  uint32_t tier; /* its id */
  uint64_t bytes;
};

struct cairn_placement {
  struct cairn_placement_step steps[CAIRN_POLICY_STEPS_MAX];
  uint32_t count;
  uint32_t unused;
  double seconds; /* the cost by the policy's own model */
};

/* How a plan for many blocks is made of decisions. */
enum cairn_plan_order {
  CAIRN_PLAN_WINDOW = 0,    /* one decision about all their bytes, followed fastest tier first */
  CAIRN_PLAN_PER_BLOCK = 1, /* each block is a decision of its own */
  CAIRN_PLAN_PER_UNIT = 2   /* each file is; its blocks stay together */
};

struct cairn_placement_policy {
  uint32_t abi_version; /* CAIRN_POLICY_ABI_VERSION */
  uint32_t plan_order;  /* of enum cairn_plan_order */
  const char* name;     /* letters, digits and dashes, at most 63 */
  /* Fills *answer, which comes zeroed. 0, or anything else when it could not decide. */
  int (*solve)(const struct cairn_tier_view* tiers, uint32_t tier_count,
               const struct cairn_placement_request* request, struct cairn_placement* answer);
};

/* The function that the shared object defines. */
#define CAIRN_POLICY_ENTRY_POINT "cairn_placement_policy_v1"
__attribute__((visibility("default"))) const struct cairn_placement_policy*
cairn_placement_policy_v1(void);
/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif
