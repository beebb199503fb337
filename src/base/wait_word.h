// SPDX-License-Identifier: Apache-2.0
// How a program tells its `cairn run` that it waits for a service that is not there: SIGWINCH with
// this value. Whatever has the number of a run that is gone ignores it, as programs ignore that
// signal.
//
// Thread safety: any thread.
#pragma once

namespace cairn {

inline constexpr int kWaitWord = 0x63777469;
// After so long.
inline constexpr int kWaitToldMs = 2000;

}  // namespace cairn
