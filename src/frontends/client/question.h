// SPDX-License-Identifier: Apache-2.0
// A question to the service over a connection of its own, which waits for the answer as long as the
// service takes.
//
// Thread safety: any thread. Ownership: the connection ends with the call.
#pragma once

#include <cstddef>

namespace cairn {

// False when no answer (protocol::Flushed) came; else `*error` is 0 or -errno.
bool ask_service(const char* socket_path, const void* message, std::size_t size, int* error);

}  // namespace cairn
