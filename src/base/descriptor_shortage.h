// SPDX-License-Identifier: Apache-2.0
// Whether an open failed only because this process or the machine has no room for one more
// descriptor: the file may be all that the caller wants it to be.
//
// Thread safety: values.
#pragma once

#include <errno.h>

namespace cairn {

// `error`: a positive errno of open(2).
inline bool is_short_of_descriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM;
}

}  // namespace cairn
