// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/file_duplicates.h"

#include <fcntl.h>

#include "base/check.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/private_descriptors.h"
#include "frontends/files/file_closing.h"
#include "frontends/files/unheld_files.h"

namespace cairn {

void note_inherited_duplicate(int fd, OpenFile* file) {
  if (__builtin_expect(fd >= DescriptorTable::limit(), 0)) {
    (void)share_unheld(*file);
    return become_plain(fd, *file);
  }
  CAIRN_DCHECK(fd >= 0 && file->description != nullptr);
  CAIRN_CHECK(file->count.add_descriptor());
  release_displaced(DescriptorTable::set(fd, file), fd);
}

void note_duplicate(OpenFile& file, int to, bool close_on_exec) {
  note_inherited_duplicate(to, &file);
  if (to >= DescriptorTable::limit()) return;
  if (!close_on_exec) PrivateDescriptors::set_survives_exec(file, true);
}

}  // namespace cairn
