// SPDX-License-Identifier: Apache-2.0
// States of a block's bucket and the one table of legal transitions.
//
//   from \ to   free              filling          clean            dirty            flushing
//   free        -                 client, service  -                -                -
//   filling     client, service   -                client, service  client           -
//   clean       service, client   -                same             client           -
//   dirty       client (discard)  -                truncate only    same             flusher
//   flushing    -                 -                flusher, cut     flusher, steal   same
//
// free: in a lease or in the pool. filling: published in the directory, no page valid yet. clean:
// identical to the backing store. dirty: newer than it. flushing: dirty, and a flush of it is in
// flight; a write in that time leaves it dirty afterwards.
//
// The methods that make the transitions (memory/catalog/block_life.h):
//
//   free -> filling                FreshBlock::publish(), relocate() for the new bucket
//   filling -> clean               LockedBlock::fill(), relocate() for the new bucket
//   filling, clean -> dirty        WritableBlock(), LockedBlock::turn_dirty(); relocate() as above
//   dirty -> flushing              LockedBlock::begin_flush()
//   flushing -> clean, dirty       ClaimedBlock::end_flush()
//   dirty, flushing -> clean       UnclaimedBlock::cut(); dirty alone: a WritableBlock given up
//   all but free -> free           UnclaimedBlock::vacate(), relocate() for the old bucket
//   filling, dirty -> clean, dirty the lock taken over from a dead owner
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

// Whether a block in this state stands in the counts of what is dirty (DirtyBlocks).
constexpr bool counts_as_dirty(BlockState state) {
  return state == BlockState::kDirty || state == BlockState::kFlushing;
}

// The states and what may be true of the page masks in them. A write whose bytes are on their way
// is dirty before the first of its pages is.
constexpr bool agrees(BlockState state, std::uint16_t valid, std::uint16_t dirty) {
  if ((dirty & ~valid) != 0) return false;
  if (state == BlockState::kFree || state == BlockState::kFilling) return valid == 0;
  return dirty == 0 || counts_as_dirty(state);
}

constexpr const char* name_of(BlockState state) {
  constexpr const char* kNames[kBlockStates] = {"free", "filling", "clean", "dirty", "flushing"};
  return kNames[static_cast<unsigned>(state)];
}

// Why a block is in the tier where `cairn explain` finds it, and why it moved, as `cairn status`
// counts it.
enum class PlacementReason : std::uint8_t {
  kNone = 0,
  kWritten,     // placed by a write, where the placement policy put it
  kRead,        // filled from the backing store by a read
  kGrown,       // moved to a larger size class
  kPromoted,    // moved up: read again while in a lower tier
  kDemoted,     // left its tier, or was stored, because room ran short there
  kNoRoom,      // placed by a write or a read, but not where it was to be: that tier was full
  kRewritten,   // moved up: written again while in a lower tier
  kRestored,    // moved up out of the swap area, because it was used again
  kHot,         // moved up: its file became hot
  kAboveHome,   // left a tier above the one where its file belongs
  kHeadroom,    // left its tier ahead of the program's next burst of writing
  kStaged,      // brought in by stage-in or a pin
  kFetched,     // brought into RAM before it was asked for
  kTierFailed,  // its tier fails: moved off, or dropped because the store has it
  // Only moves have these: blocks that leave the tiers.
  kStagedOut,
  kThrough,      // the kernel works on the file: it is mapped, or executed
  kOutdated,     // somebody outside changed the file
  kCut,          // truncated, or a hole was punched
  kRemoved,      // the file is gone
  kNotAdmitted,  // not worth its place in the tier below, and the backing store has it
  // Only moves have these: blocks that are stored and stay.
  kDue,      // by the file's trigger
  kDrained,  // everything was to be stored
  kAsked,    // fsync, close, or a caller that needs the file stored
  kCount
};
inline constexpr unsigned kPlacementReasons = static_cast<unsigned>(PlacementReason::kCount);

// The reason in a sentence, for the user of `cairn explain`.
constexpr const char* name_of(PlacementReason reason) {
  constexpr const char* kNames[] = {"-",
                                    "written: where the placement policy put it",
                                    "read from the backing store",
                                    "grew to a larger bucket",
                                    "read again in a lower tier",
                                    "oldest when the tier above ran short of room",
                                    "the tier where it was to be had no room",
                                    "written again in a lower tier",
                                    "used again while in the swap area",
                                    "its file became hot",
                                    "its file does not belong in the tier above",
                                    "room for the next burst of writing was made above",
                                    "staged in",
                                    "fetched ahead of its use",
                                    "the tier where it was fails"};
  constexpr unsigned kPlaces = sizeof kNames / sizeof kNames[0];
  return static_cast<unsigned>(reason) < kPlaces ? kNames[static_cast<unsigned>(reason)] : "-";
}

// For the table of moves.
constexpr const char* word_for(PlacementReason reason) {
  constexpr const char* kWords[kPlacementReasons] = {"-",
                                                     "written",
                                                     "read",
                                                     "grown",
                                                     "read again",
                                                     "room",
                                                     "no room",
                                                     "written again",
                                                     "swapped back",
                                                     "hot",
                                                     "not at home",
                                                     "room ahead",
                                                     "staged in",
                                                     "ahead of use",
                                                     "tier failed",
                                                     "staged out",
                                                     "left to the kernel",
                                                     "changed outside",
                                                     "cut",
                                                     "removed",
                                                     "not admitted",
                                                     "due",
                                                     "drain",
                                                     "asked for"};
  return static_cast<unsigned>(reason) < kPlacementReasons ? kWords[static_cast<unsigned>(reason)]
                                                           : "-";
}

}  // namespace cairn
