// SPDX-License-Identifier: Apache-2.0
// Stores that cannot make durable what they were given: for tests.
#pragma once

#include <atomic>
#include <functional>

namespace cairn::node::testing {

// What each syncfs of this program answers while it is not 0.
extern std::atomic<int> syncfs_error;

class SyncfsFails {
 public:
  SyncfsFails();
  ~SyncfsFails() { syncfs_error.store(0); }
  SyncfsFails(const SyncfsFails&) = delete;
  SyncfsFails& operator=(const SyncfsFails&) = delete;
};

// Runs `work` in a thread of its own, whose fsync says EIO; `as_stranger`: and which may not open
// what the modes of files forbid.
void while_fsync_fails(const std::function<void()>& work, bool as_stranger = false);

}  // namespace cairn::node::testing
