// SPDX-License-Identifier: Apache-2.0
// Asks the kernel about the device behind a file system.
//
// Thread safety: stateless functions.
#pragma once

#include <sys/types.h>

namespace cairn::node {

// True for a spinning disk, and for a partition or loop device on one. False where there is no
// block device.
bool is_rotational(dev_t device);

}  // namespace cairn::node
