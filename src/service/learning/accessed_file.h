// SPDX-License-Identifier: Apache-2.0
// The name of a file that a program has told of an access to.
//
// The kernel may ask the store while it finds the descriptor: a caller holds no lock that others
// than the event reader need.
//
// Thread safety: pure but for what the kernel says of the process. Ownership: values.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/object_key.h"

namespace cairn::node {

// The name that the kernel has for the descriptor of that process; of a file that it has closed
// since, its device and inode.
std::string name_of_accessed(pid_t pid, std::int32_t descriptor, const ObjectKey& key);
std::string name_by_key(const ObjectKey& key);

}  // namespace cairn::node
