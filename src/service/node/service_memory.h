// SPDX-License-Identifier: Apache-2.0
// The shared memory of a node and the pool files of its file tiers, which have no name: new ones,
// or those of the service before.
//
// Thread safety: none. Errors: kInvalid and kExhausted, with what to change; those of the system,
// with the path.
#pragma once

#include "base/node_config.h"
#include "base/status.h"
#include "memory/tiers/node_memory.h"
#include "service/keeping/inheritance.h"
#include "service/keeping/kept_descriptors.h"

namespace cairn::node {

// Both label the descriptors for the next service.
Result<NodeMemory> create_memory(const NodeConfig& config, KeptDescriptors& labels);
// The memory of the service that died, as it left it. After an error it is there as before.
// Errors: kNotFound when its descriptors are gone, kIncompatible when they are of something else,
// kExhausted when there is no room to map it.
Result<NodeMemory> inherit_memory(const NodeConfig& config, Inheritance& inherited,
                                  KeptDescriptors& labels);

}  // namespace cairn::node
