// SPDX-License-Identifier: Apache-2.0
// The rules of O_DIRECT: a transfer that the backing file system would refuse for its alignment is
// refused here too, although nothing here depends on it. Programs find out by trying what a device
// takes, and believe that what succeeds is what it wants.
//
// What the file system would let pass is never refused: where it names no rules there are none, and
// of coarse ones no more than 512 bytes are asked for.
//
// Thread safety: any thread.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "frontends/descriptors/open_file.h"

namespace cairn {

// After the status flags of `file` became known, or changed.
void note_direct_flag(OpenFile& file);

// Whether a transfer of these parts at `offset` is refused (EINVAL). Asked where
// OpenFile::reads_plainly is false, and by writers.
bool is_refused_read(OpenFile& file, const iovec* parts, int count, std::uint64_t offset);
bool is_refused_write(OpenFile& file, const iovec* parts, int count, std::uint64_t offset);

}  // namespace cairn
