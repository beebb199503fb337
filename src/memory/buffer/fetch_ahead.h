// SPDX-License-Identifier: Apache-2.0
// Bringing blocks into RAM before anybody asks for them: the way in to the blocks for the service,
// and for a program that is about to read much in small pieces, beside that of the data calls
// (memory/buffer/object_io.h).
//
// A block that is fetched is locked until its bytes are there, so that a program that wants it
// meanwhile waits for the read under way instead of beginning another one.
//
// Thread safety: any thread; several may fetch of one object.
#pragma once

#include <cstdint>
#include <optional>

#include "memory/buffer/object_io.h"

namespace cairn {

struct Fetched {
  unsigned blocks = 0;       // brought in, from the first one on
  int error = 0;             // of the backing store, -errno
  bool has_no_room = false;  // RAM has none for the next one: room is being made
};

// At most so many blocks are read in one operation.
inline constexpr unsigned kFetchBlocksMax = 16;

// Reads blocks from `first` on that are in no tier into RAM, in one operation, and marks them as
// not used yet. Ends at the first block that is resident, at the end of the file, or when room runs
// short. The blocks count for `predictor`; without one, as read by the program, and without the
// mark. Requires: 0 < count <= kFetchBlocksMax.
Fetched fetch_ahead(const ObjectAccess& access, BlockNumber first, unsigned count,
                    std::optional<std::uint8_t> predictor);

// The same of all of them that are in no tier, also behind blocks that are: a program or another
// fetch may have brought one in since they were chosen. Result: `blocks` counts those that need no
// further look, from the first on. Requires: 0 < count <= kFetchBlocksMax.
Fetched fetch_missing(const ObjectAccess& access, BlockNumber first, unsigned count,
                      std::optional<std::uint8_t> predictor);

}  // namespace cairn
