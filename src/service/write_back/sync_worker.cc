// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/sync_worker.h"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/check.h"
#include "frontends/protocol/protocol.h"
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

void SyncWorker::submit(SharedFd connection, std::uint64_t device) {
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(Request{std::move(connection), device});
  }
  changed_.notify_one();
}

void SyncWorker::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !requests_.empty(); });
    if (requests_.empty()) return;
    const std::uint64_t device = requests_.front().device;
    const auto of_others =
        std::partition(requests_.begin(), requests_.end(),
                       [device](const Request& request) { return request.device == device; });
    const std::vector<Request> round(std::make_move_iterator(requests_.begin()),
                                     std::make_move_iterator(of_others));
    CAIRN_CHECK(!round.empty());
    requests_.erase(requests_.begin(), of_others);
    lock.unlock();
    protocol::Flushed answer;
    answer.error = store_all_of(device);
    for (const Request& request : round)
      (void)!::send(request.connection->get(), &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT);
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
  if (outcome.left.empty()) return 0;
  return outcome.left.front().error != 0 ? outcome.left.front().error : EIO;
}

}  // namespace cairn::node
