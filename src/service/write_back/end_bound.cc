// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/end_bound.h"

#include <unistd.h>

#include "service/process/log.h"
#include "service/process/thread_start.h"

namespace cairn::node {

EndBound::EndBound(std::chrono::seconds patience, int exit_status, KeptLife& life) {
  const auto end_late = [this, patience, exit_status, &life] {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, patience, [this] { return is_over_; })) return;
    log::critical("threads of the node do not end after {} s: it ends without them",
                  patience.count());
    life.done.store(1 + exit_status);
    ::_exit(exit_status);
  };
  if (!start_thread(&thread_, end_late))
    log::warn("no thread can be had to bound the end of the node by {} s", patience.count());
}

EndBound::~EndBound() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace cairn::node
