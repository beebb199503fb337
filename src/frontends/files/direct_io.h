// SPDX-License-Identifier: Apache-2.0
// The rules of O_DIRECT: we refuse a transfer that the backing file system would refuse for its
// alignment, although nothing here depends on it. Programs find out by trial which alignment a
// device takes, and believe in the first that succeeds.
//
// A transfer that the file system would let pass always passes: where it names no rules there are
// none, and of coarse ones we demand 512 bytes at most.
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

// Whether a transfer of these parts at `offset` fails with EINVAL. Writers ask, and readers where
// OpenFile::reads_plainly is false.
bool is_refused_read(OpenFile& file, const iovec* parts, int count, std::uint64_t offset);
bool is_refused_write(OpenFile& file, const iovec* parts, int count, std::uint64_t offset);

}  // namespace cairn
