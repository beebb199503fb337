// SPDX-License-Identifier: Apache-2.0
// Blocks that are used in their file tier, without a place in memory: few operations of the device.
//
// Large requests stay large. With requests of 64 KiB a device gives a third of its rate, so
// neighbouring blocks are read and written at once. Small requests become larger: the second piece
// of a block brings a copy that serves the rest of it, and sequential reads bring two, four and at
// last sixteen blocks with one operation.
//
// Thread safety: any thread. Reads take no lock: the copy counts if no block's sequence has moved,
// as for a hit (memory/buffer/read_hit.h). Writes hold the locks of fresh blocks, which nobody else
// had.
#pragma once

#include "memory/buffer/block_access.h"

namespace cairn {

// Reads what lies side by side in one file tier from `offset` on and is used where it is. Returns
// the bytes read, up to `length`; 0 when block-by-block work is needed there.
std::size_t read_file_tier_run(const ObjectAccess& access, std::uint64_t offset, std::byte* out,
                               std::size_t length);

// Reads a piece of one block in the same way: from the thread's copy (BounceCopy) if that has the
// block, else with a new copy where it reads in order. Returns `length`, or 0.
std::size_t read_file_tier_piece(const ObjectAccess& access, std::uint64_t offset, std::byte* out,
                                 std::size_t length);

// Writes whole blocks from `number` on: into `first`, which was just placed in a file tier and has
// no valid page, and into as many of the following as can be placed too. Returns the bytes written,
// a multiple of the block size; 0 when the tier did not take them (then none of them is resident).
// A tier that keeps checksums gets a copy of the bytes: `in` may change meanwhile.
std::size_t write_file_tier_run(const ObjectAccess& access, LockedBlock first, BlockNumber number,
                                const std::byte* in, std::size_t blocks);

}  // namespace cairn
