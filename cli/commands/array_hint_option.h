// SPDX-License-Identifier: Apache-2.0
//
// `--array 'FILE:/DATASET chunk=[N,...] ghost=[N,...]'` of `cairn run` and `cairn declare`.
//
// Thread safety: any thread. Ownership: nothing is kept.
#pragma once

#include <string>
#include <vector>

namespace cairn::cli {

// The hints as the node takes them: a file that is named by a path has its whole path. A hint with
// numbers that cannot be is left out, with a warning.
// Errors: Failure for what is no hint.
std::vector<std::string> take_array_hints(const std::vector<std::string>& texts);

}  // namespace cairn::cli
