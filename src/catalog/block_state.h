// SPDX-License-Identifier: Apache-2.0
// States of a block's bucket and the one table of legal transitions.
//
//   from \ to   free              filling          clean            dirty            flushing
//   free        -                 client, service  -                -                -
//   filling     client, service   -                client, service  client           -
//   clean       service, client   -                same             client           -
//   dirty       client (discard)  -                truncate only    same             flusher
//   flushing    -                 -                flusher          flusher, steal   same
//
// free: in a lease or in the pool. filling: published in the directory, no page valid yet. clean:
// identical to the backing store. dirty: newer than it. flushing: dirty, and a flush of it is in
// flight; a write in that time leaves it dirty afterwards.
//
// Thread safety: values.
#pragma once

#include <cstdint>

namespace cairn {

enum class BlockState : std::uint8_t { kFree = 0, kFilling, kClean, kDirty, kFlushing };
inline constexpr unsigned kBlockStates = 5;

constexpr bool is_legal_transition(BlockState from, BlockState to) {
  constexpr bool kLegal[kBlockStates][kBlockStates] = {
      //             free   filling clean  dirty  flushing
      /* free     */ {false, true, false, false, false},
      /* filling  */ {true, false, true, true, false},
      /* clean    */ {true, false, true, true, false},
      /* dirty    */ {true, false, true, true, true},
      /* flushing */ {false, false, true, true, true},
  };
  return kLegal[static_cast<unsigned>(from)][static_cast<unsigned>(to)];
}

constexpr const char* name_of(BlockState state) {
  constexpr const char* kNames[kBlockStates] = {"free", "filling", "clean", "dirty", "flushing"};
  return kNames[static_cast<unsigned>(state)];
}

// Why a block is in the tier where `cairn explain` finds it.
enum class PlacementReason : std::uint8_t {
  kNone = 0,
  kWritten,   // placed by a write, where the placement policy put it
  kRead,      // filled from the backing store by a read
  kGrown,     // moved to a larger size class
  kPromoted,  // moved up: read again while in a lower tier, or asked for
  kDemoted    // moved down: oldest when the tier above ran short of room
};
constexpr const char* name_of(PlacementReason reason) {
  constexpr const char* kNames[] = {"-",
                                    "written: where the placement policy put it",
                                    "read from the backing store",
                                    "grew to a larger bucket",
                                    "read again in a lower tier",
                                    "oldest when the tier above ran short of room"};
  return kNames[static_cast<unsigned>(reason)];
}

}  // namespace cairn
