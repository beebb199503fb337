// SPDX-License-Identifier: Apache-2.0
// Whether an open may give a buffered file: by the flags of the open, by the path before it and by
// the descriptor after it.
//
// Thread safety: any thread. All of it leaves errno alone.
#pragma once

#include <sys/stat.h>

#include "base/ids.h"
#include "memory/catalog/object_table.h"
#include "memory/tiers/actor.h"

namespace cairn {

// The parts of a status that is_candidate() needs.
inline constexpr unsigned kCandidateMask = STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID;

// An open with these flags never gives a buffered file, whatever the path is.
bool is_never_buffered(int flags);

// Whether the file behind `fd` is to be buffered, or is buffered already: then `*known` is its
// object. `raw` is its status by kCandidateMask, `key` the key of it.
bool is_candidate(int fd, const struct ::statx& raw, const ObjectKey& key, ObjectIndex* known);

// The program has opened a file that is not to be buffered, and works on it through the kernel, by
// whatever name others open it meanwhile: the open leaves a trace, so that none of them buffers it
// (memory/catalog/unmanaged_opens.h). True when another program was faster: `*known` is the object
// that it has made, and the file is to be buffered here as well.
bool must_be_buffered_after_all(const struct ::statx& raw, const ObjectKey& key,
                                ObjectIndex* known);

// The same of a descriptor that came along, from outside the run perhaps. A process attaches for it
// only when the file is below a managed directory and left out there: a log, say, which may get a
// managed name when it is rotated.
bool is_buffered_by_others(int fd, const ObjectKey& key);

// Whether an open of this path would give a buffered file, were it one for reading or writing: also
// where the process has no descriptor left for one.
bool may_be_buffered(int directory, const char* path);

// The actor for the OpeningGuard around an open of the path; null when the open needs no guard. A
// process attaches before the kernel opens its first managed file: afterwards another process could
// unlink the file, and throw away its dirty data, in the time that attaching takes.
const Actor* opening_actor(int directory, const char* path, int flags);

// The program opened an O_PATH descriptor. It is not buffered, but it keeps a file without a name
// alive for fstat() and for another open through /proc: from the first one on, close does not throw
// the data of such files away.
void note_path_descriptor(int fd);

}  // namespace cairn
