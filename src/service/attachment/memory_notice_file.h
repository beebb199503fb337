// SPDX-License-Identifier: Apache-2.0
// The notice beside client.sock (protocol::MemoryNotice).
//
// Thread safety: functions without state.
#pragma once

#include <string>

#include "memory/tiers/node_memory.h"
#include "service/attachment/attach_events.h"

namespace cairn::node {

// Says where this process has the memory open. Where the file cannot be made the log says so: a
// node without a notice serves as well, but its clients wait for its welcome.
void write_notice(const NodeMemory& memory, const std::string& socket_path, AttachEvents& events);
void remove_notice(const std::string& socket_path);

}  // namespace cairn::node
