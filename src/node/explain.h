// SPDX-License-Identifier: Apache-2.0
// Where the bytes of one file are: what `cairn explain PATH` prints.
//
// Thread safety: any thread; a snapshot.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "node/node_context.h"

namespace cairn::node {

// The file is named as stat(2) names it.
nlohmann::json explain_file(const NodeContext& context, std::uint64_t device, std::uint64_t inode);

}  // namespace cairn::node
