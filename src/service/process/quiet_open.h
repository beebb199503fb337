// SPDX-License-Identifier: Apache-2.0
// Opens files that the node reads of its own accord.
//
// Thread safety: from any thread.
#pragma once

#include <string>

#include "service/process/unique_fd.h"

namespace cairn::node {

// The regular file at `path` for reading, so that nobody notices: its access time stays as it is,
// where the kernel allows that (open(2), O_NOATIME: to the owner and to root), and what is no
// regular file is not opened at all, as to open a device or a pipe may do something. None, with the
// reason in errno (EINVAL: no regular file), if it cannot be had.
UniqueFd open_quietly(const std::string& path);

}  // namespace cairn::node
