// SPDX-License-Identifier: Apache-2.0
// Calls whose number has become another file's between the look into the table and the call: they
// begin again, with what is at the number by now.
//
// Thread safety: any thread.
#pragma once

#include <errno.h>

#include "frontends/descriptors/descriptor_table.h"
#include "frontends/libc/hook.h"

namespace cairn {

// The answer of a hook to a call on `file`, which stood at `fd`. `again()` is the hook itself.
template <typename Result, typename Again>
[[gnu::always_inline]] inline Result answer(int fd, const OpenFile* file, Result result,
                                            Again&& again) {
  if (__builtin_expect(result == -EBADF, 0) && DescriptorTable::find(fd) != file) return again();
  return with_errno(result);
}

}  // namespace cairn
