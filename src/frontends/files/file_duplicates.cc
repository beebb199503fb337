// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/file_duplicates.h"

#include <errno.h>
#include <fcntl.h>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/private_descriptors.h"
#include "frontends/files/file_closing.h"
#include "frontends/files/unheld_files.h"

namespace cairn {

bool note_inherited_duplicate(int fd, OpenFile* file) {
  if (__builtin_expect(fd >= DescriptorTable::limit(), 0)) {
    (void)share_unheld(*file);
    become_plain(fd, *file);
    return true;
  }
  CAIRN_DCHECK(fd >= 0);
  if (!file->count.add_descriptor()) return false;
  release_displaced(DescriptorTable::set(fd, file), fd);
  return true;
}

int note_duplicate(OpenFile& file, int to, bool close_on_exec) {
  if (!note_inherited_duplicate(to, &file)) {
    release_displaced(DescriptorTable::take(to), to);
    sys::close(to);
    return -EBADF;
  }
  if (to < DescriptorTable::limit() && !close_on_exec)
    PrivateDescriptors::set_survives_exec(file, true);
  return to;
}

}  // namespace cairn
