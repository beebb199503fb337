// SPDX-License-Identifier: Apache-2.0
// The answer of stat() for a buffered file: the kernel's answer with the application's size and
// times over it.
//
// Thread safety: any thread.
#pragma once

#include <sys/stat.h>

#include "base/ids.h"
#include "memory/catalog/object_table.h"

namespace cairn {

// A status needs these parts, so that we recognise its file and can put our size and times over it.
inline constexpr unsigned kOverlayMask = STATX_BASIC_STATS | STATX_BTIME;
inline constexpr unsigned kOverlaidParts = STATX_SIZE | STATX_BLOCKS | STATX_MTIME | STATX_CTIME;
static_assert((kOverlayMask & (STATX_INO | STATX_BTIME)) == (STATX_INO | STATX_BTIME),
              "the file's key");
static_assert((kOverlayMask & kOverlaidParts) == kOverlaidParts);

ObjectKey key_of(const struct ::statx& status);
StoreStamp stamp_of(const struct ::statx& status);

// Whether two statuses (STATX_INO) are of one file, whatever its names.
inline bool is_same_file(const struct ::statx& one, const struct ::statx& other) {
  return one.stx_ino == other.stx_ino && one.stx_dev_major == other.stx_dev_major &&
         one.stx_dev_minor == other.stx_dev_minor;
}

// True when some file of the node is buffered and this process can see it.
bool may_need_overlay();
// The buffered object of a status, if there is one.
ObjectIndex object_of(const struct ::statx& status);
// statx(2) with the overlay. 0 or -errno. Requires: `mask` is what the application wants.
int visible_statx(int directory, const char* path, int flags, unsigned mask,
                  struct ::statx* result);
// The same as struct stat.
int visible_stat(int directory, const char* path, int flags, struct ::stat* result);

}  // namespace cairn
