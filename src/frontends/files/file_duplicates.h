// SPDX-License-Identifier: Apache-2.0
// Further descriptors of a record: the application's duplicates of a buffered file.
//
// Thread safety: any thread. Ownership: each counts on the record (OpenFile::count), which
// file_closing.h takes back.
#pragma once

#include "frontends/descriptors/open_file.h"

namespace cairn {

// A further descriptor of a record, tracked as far as the table goes. Past its end the kernel has
// the file. Requires: the caller counts on the record (hold_file()), or no other thread runs.
void note_inherited_duplicate(int fd, OpenFile* file);
// The kernel made `to` a duplicate of a tracked descriptor of `file`. What the table has for `to`
// ends with that. Requires: as above.
void note_duplicate(OpenFile& file, int to, bool close_on_exec);

}  // namespace cairn
