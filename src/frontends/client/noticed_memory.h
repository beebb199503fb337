// SPDX-License-Identifier: Apache-2.0
// The node's memory as a process finds it without an answer of the service: by the notice beside
// the socket, through the service's /proc.
//
// Thread safety: any thread. Ownership: the descriptors of the pool files belong to the memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "frontends/protocol/protocol.h"

namespace cairn {

struct NoticedMemory {
  NodeMemory memory;
  std::array<int, kTiersMax> tier_fds;
  std::uint64_t control_inode = 0;
};

// Nothing when there is no notice of the service with this process number.
std::optional<protocol::MemoryNotice> read_notice(const char* socket_path, std::int32_t service);

// Nothing when it cannot be opened or mapped: another process number space, another root, limits.
std::optional<NoticedMemory> map_noticed(const protocol::MemoryNotice& notice);

}  // namespace cairn
