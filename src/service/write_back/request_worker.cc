// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/request_worker.h"

#include <sys/socket.h>

#include <utility>

#include "base/check.h"
#include "frontends/protocol/protocol.h"

namespace cairn::node {

RequestWorker::~RequestWorker() { stop(); }

void RequestWorker::start() {
  CAIRN_CHECK(threads_.empty());
  for (unsigned thread = 0; thread < kThreads; ++thread) threads_.emplace_back([this] { work(); });
}

void RequestWorker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void RequestWorker::submit(SharedFd connection, Work work) {
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(Request{std::move(connection), std::move(work)});
  }
  changed_.notify_one();
}

void RequestWorker::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !requests_.empty(); });
    if (requests_.empty()) return;
    const Request request = std::move(requests_.front());
    requests_.pop_front();
    lock.unlock();
    protocol::Flushed answer;
    answer.header.type = protocol::Type::kFlushed;
    const int result = request.work();
    answer.error = result < 0 ? -result : 0;
    answer.value = result > 0 ? static_cast<std::uint32_t>(result) : 0;
    // Nothing waits for a client that does not take its answer.
    if (request.connection) {
      (void)!::send(request.connection->get(), &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    lock.lock();
  }
}

}  // namespace cairn::node
