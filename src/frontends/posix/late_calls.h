// SPDX-License-Identifier: Apache-2.0
// Calls whose number becomes another file's between the look into the table and the call, or while
// they are at work: they begin again, with what is at the number by now, or keep the file open.
//
// Thread safety: any thread.
#pragma once

#include <errno.h>

#include "frontends/descriptors/descriptor_table.h"
#include "frontends/files/file_use.h"
#include "frontends/libc/hook.h"

namespace cairn {

// The answer of a hook to a call on `file`, which stood at `fd`. `again()` is the hook itself.
template <typename Result, typename Again>
[[gnu::always_inline]] inline Result answer(int fd, const OpenFile* file, Result result,
                                            Again&& again) {
  if (__builtin_expect(result == -EBADF, 0) && DescriptorTable::find(fd) != file) return again();
  return with_errno(result);
}

// What `call(file, real)` answers, during which the file of `fd` stays open: `real` is its real
// descriptor. Where the number is none of ours, or no longer: call(nullptr, fd). Signal handlers
// wait meanwhile, so no call may that waits for somebody else.
template <typename Call>
auto with_open_file(int fd, Call&& call) {
  while (OpenFile* file = DescriptorTable::find(fd)) {
    FileUse use(*file);
    if (use.begin()) return call(file, use.descriptor());
    if (DescriptorTable::find(fd) == file) break;  // its record ends: the number is closed
  }
  return call(static_cast<OpenFile*>(nullptr), fd);
}

}  // namespace cairn
