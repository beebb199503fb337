// SPDX-License-Identifier: Apache-2.0
// A block that the backing store has leaves the tiers.
//
// Thread safety: any thread, with an actor of its own.
#pragma once

#include "memory/tiers/actor.h"

namespace cairn {

// False when the block is dirty, in use, or not there any more. Nobody is waited for.
bool drop_clean(Actor& actor, BucketIndex bucket, PlacementReason reason);

}  // namespace cairn
