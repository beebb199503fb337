// SPDX-License-Identifier: Apache-2.0
//
// `cairn arrays FILE`: which datasets of an HDF5 file programs read, what of them is cached, and
// how many reads came from there.
//
// Thread safety: one per process. Ownership: nothing is kept. Errors: Failure.
#pragma once

#include <string>

#include "cli/arguments/arguments.h"
#include "cli/node/control_client.h"

namespace cairn::cli {

int command_arrays(const Arguments& arguments);

// What the node says of the file's datasets, or of one of them. Errors: Failure where it says
// nothing of them.
Json datasets_of(const std::string& path, const std::string& node, const std::string& dataset,
                 bool names_chunks);
std::string dataset_text(const Json& dataset);

}  // namespace cairn::cli
