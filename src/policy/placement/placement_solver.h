// SPDX-License-Identifier: Apache-2.0
// The dynamic programme that the placing policies share: how to divide a request over the tiers so
// that the sum of costs is least.
//
// A policy states a problem: for each tier, fastest first, its room and what an access costs there.
// With T(s, i) the least cost of putting s bytes into tier i and those below it, and n tiers,
//
//   T(s, i) = min  place(s, i)                                     s <= C_i   all of it here
//                  T(s, i+1)                                                  skip this tier
//                  place(x, i) + T(s - x, i+1)        0 < x < s, x <= C_i     split
//                  room + M(s - C_i, i+1) + place(s, i)            s > C_i    make room here first
//   T(s, n) = store(s)
//
// M(m, i) is the least cost of moving m bytes of what is in the tier above into tier i and those
// below it, with move() in the place of place(). It needs no making of room: filling what is left
// in a tier and taking the rest further down moves the same bytes out of the way and writes fewer.
// The store takes no moved bytes, M(m, n) is infinite, because making room there is what the
// flusher does. No more can be moved out of a tier than its movable bytes. The form is that of
// Hermes (HPDC 2018; JCST 35(1), 2020, appendix, equations 2 to 4); the paper splits only at x =
// C_i, which is not the optimum once a tier is faster than its place in the order says.
//
// Bytes are counted in granules: at least a block, at most kGranulesMax per request. Costs are
// linear in the bytes (AccessCost), so the minimum over x is one over a window that slides with s,
// and a row of the memo costs O(granules) instead of O(granules^2).
//
// Thread safety: no state. Memory: about 4 KiB of stack, no allocation: it runs in clients as well.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "policy/placement/placement_policy.h"

namespace cairn {

// The cost of an access of some bytes; an access of none costs nothing. Both parts are finite.
struct AccessCost {
  double fixed = 0;
  double per_byte = 0;

  double of(std::uint64_t bytes) const {
    return bytes == 0 ? 0 : fixed + per_byte * static_cast<double>(bytes);
  }
};

struct SolverTier {
  TierId id{};
  std::uint64_t usable_bytes = 0;
  std::uint64_t movable_bytes = 0;  // of what is in it: what may be moved down to make room
  AccessCost place;                 // bytes of the request
  AccessCost move;                  // bytes that are moved here from above
};

struct PlacementProblem {
  std::array<SolverTier, kTiersMax> tiers{};
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  AccessCost store;      // what no tier takes
  double room_cost = 0;  // of each making of room, besides the moves
};

inline constexpr unsigned kGranulesMax = 64;

// The unit that the solver counts in: the request itself up to a block, else whole blocks.
std::uint64_t granule_of(std::uint64_t request_bytes);

// The optimum. Placement::seconds is its cost. Among equal ones: undivided, then in faster tiers.
// Room that counting in granules left over is given to bytes that would go to the store.
Placement solve_placement(const PlacementProblem& problem);

// Most policies begin so: the tiers that the request may use, with their room, and costs unset.
// All bytes of a tier may be moved out of it.
PlacementProblem problem_of(std::span<const TierView> tiers, const PlacementRequest& request);

// Seconds per byte and per access, finite and not negative whatever the view says: a bandwidth that
// is not positive counts as 1 byte per second.
double seconds_per_byte(double bandwidth);
double seconds_per_access(double latency);

// request.move_share, between 0 and 1 whatever it says.
double move_share_of(const PlacementRequest& request);

// The cost for a store whose speed is unknown: a block there costs more than in any tier, so that
// even one block less there is worth a further division.
AccessCost slower_than_any_tier(const PlacementProblem& problem);

}  // namespace cairn
