// SPDX-License-Identifier: Apache-2.0
// The shared memory of a new node, and the pool files of its file tiers, which have no name.
//
// Thread safety: none. Errors: kInvalid and kExhausted, with what to change; those of the system,
// with the path.
#pragma once

#include "base/node_config.h"
#include "base/status.h"
#include "memory/tiers/node_memory.h"

namespace cairn::node {

Result<NodeMemory> create_memory(const NodeConfig& config);

}  // namespace cairn::node
