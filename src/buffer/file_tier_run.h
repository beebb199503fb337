// SPDX-License-Identifier: Apache-2.0
// Several neighbouring blocks in a file tier, read or written with one operation of the device.
//
// A device that is asked for 64 KiB at a time gives a third of its rate (an NVMe disk of 2.8 GB/s
// 0.9, a solid-state disk of 550 MB/s 330): large requests of a program must stay large.
//
// Thread safety: any thread. Reads take no lock: the copy counts if no block's sequence has moved,
// as for a hit (buffer/read_hit.h). Writes hold the locks of fresh blocks, which nobody else had.
#pragma once

#include "buffer/block_access.h"

namespace cairn {

// Reads what lies side by side in one file tier from `offset` on and is used where it is. Returns
// the bytes read, up to `length`; 0 when block-by-block work is needed there.
std::size_t read_file_tier_run(const ObjectAccess& access, std::uint64_t offset, std::byte* out,
                               std::size_t length);

// Writes whole blocks from `number` on: into `first`, which was just placed in a file tier and has
// no valid page, and into as many of the following as can be placed too. Returns the bytes written,
// a multiple of the block size; 0 when the tier did not take them (then none of them is resident).
std::size_t write_file_tier_run(const ObjectAccess& access, LockedBlock first, BlockNumber number,
                                const std::byte* in, std::size_t blocks);

}  // namespace cairn
