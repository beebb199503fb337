// SPDX-License-Identifier: Apache-2.0
// Finds a file again that was closed, by the path that it had.
//
// A program that writes a file under a temporary name renames it in its folder: so the folder is
// searched too.
//
// Thread safety: any thread. May wait for the store.
#pragma once

#include <string>

#include "base/object_key.h"
#include "service/process/unique_fd.h"

namespace cairn::node {

// Returns an O_PATH descriptor of that very file; none when it is neither there nor in its folder.
UniqueFd find_file(const ObjectKey& key, const std::string& path);

}  // namespace cairn::node
