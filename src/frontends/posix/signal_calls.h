// SPDX-License-Identifier: Apache-2.0
// The wrapper around signal handlers, as far as the start of the library has to do with it.
//
// Thread safety: called once, from the constructor, before other threads exist.
#pragma once

namespace cairn {

// Puts the wrapper before SIGSEGV and SIGBUS, so that copies from and to bad addresses end early.
// Requires: a configured session.
void guard_against_faults();

}  // namespace cairn
