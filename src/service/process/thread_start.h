// SPDX-License-Identifier: Apache-2.0
// Starts threads while the node serves, when the machine may have none to give: its user has a
// limit of processes, which programs reach as well.
//
// Thread safety: any thread. Ownership: the thread is the caller's.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

namespace cairn::node {

// Requires: `thread` has none. Returns: whether it has one now.
template <typename Work>
[[nodiscard]] bool start_thread(std::thread* thread, Work&& work) {
  try {
    *thread = std::thread(std::forward<Work>(work));
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace cairn::node
