// SPDX-License-Identifier: Apache-2.0
// How many descriptors the service may hold: one per file with dirty data, two per client.
//
// Thread safety: called once at start, before the first thread.
#pragma once

#include <cstdint>

namespace cairn::node {

// Raises the soft limit to the hard one, and as root the hard one to half of fs.nr_open.
// Returns: the limit that holds now.
std::uint64_t raise_descriptor_limit();

}  // namespace cairn::node
