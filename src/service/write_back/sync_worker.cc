// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/sync_worker.h"

#include <errno.h>
#include <utility>

#include "base/check.h"
#include "service/write_back/drain.h"

namespace cairn::node {

SyncWorker::~SyncWorker() { stop(); }

void SyncWorker::start() {
  CAIRN_CHECK(threads_.empty());
  for (unsigned thread = 0; thread < kThreads; ++thread) threads_.emplace_back([this] { work(); });
}

void SyncWorker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void SyncWorker::submit(Asker asker, std::uint64_t device) {
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(Request{std::move(asker), device});
  }
  changed_.notify_one();
}

void SyncWorker::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !requests_.empty(); });
    if (requests_.empty()) return;
    const std::uint64_t device = requests_.front().device;
    std::vector<Asker> round;
    std::deque<Request> others;
    for (Request& request : requests_) {
      if (request.device == device) {
        round.push_back(std::move(request.asker));
      } else {
        others.push_back(std::move(request));
      }
    }
    CAIRN_CHECK(!round.empty());
    requests_.swap(others);
    lock.unlock();
    const int error = store_all_of(device);
    for (Asker& asker : round) asker.answer(-error);
    lock.lock();
  }
}

int SyncWorker::store_all_of(std::uint64_t device) {
  DrainOptions options;
  options.device = device;
  options.is_sync = true;
  // A node that ends drains itself.
  options.progress = [this](const DrainProgress&) { return !stopping_; };
  const DrainOutcome outcome = drain(memory_, files_, flusher_, options);
  if (outcome.left.empty()) return -afterwards_(device);
  return outcome.left.front().error != 0 ? outcome.left.front().error : EIO;
}

}  // namespace cairn::node
