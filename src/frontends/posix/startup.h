// SPDX-License-Identifier: Apache-2.0
// The library's start in a process.
//
// Thread safety: start_session() is called once, from the constructor, before other threads exist;
// join_late() once, before any other call of this library.
#pragma once

namespace cairn {

// Configures the session from the environment and attaches. Does nothing outside a run, nor where a
// program that was running already has loaded the library.
void start_session();

// Configures the session in such a program. Its descriptors and streams stay the kernel's.
void join_late(const char* socket_path);

}  // namespace cairn
