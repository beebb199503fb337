// SPDX-License-Identifier: Apache-2.0
// Messages with descriptors over a SEQPACKET socket, by system calls of our own.
//
// Thread safety: as the system calls'. Ownership: received descriptors belong to the caller.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ids.h"

namespace cairn {

// The control segment, the data segment and one pool for each tier below memory.
inline constexpr unsigned kPassedDescriptorsMax = 1 + kTiersMax;

struct ReceivedMessage {
  long size = 0;  // bytes, or -errno; 0 when the peer is gone
  int descriptors[kPassedDescriptorsMax];
  unsigned descriptor_count = 0;
};

// A connected socket whose sends and receives end after `timeout_ms`, at or above `floor`; or
// -errno.
int connect_seqpacket(const char* path, int floor, int timeout_ms);
// The process at the other end, as this one's kernel numbers it; 0 when it has no number here.
std::int32_t peer_process(int socket);
// 0 or -errno. `fd` -1 sends no descriptor. Never raises SIGPIPE.
int send_message(int socket, const void* message, std::size_t size, int fd);
// One that nobody misses: -EAGAIN when the service has not read the ones before.
int send_hint(int socket, const void* message, std::size_t size);
ReceivedMessage receive_message(int socket, void* buffer, std::size_t size);

}  // namespace cairn
