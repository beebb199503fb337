// SPDX-License-Identifier: Apache-2.0
#include "node/request_worker.h"

#include <sys/socket.h>

#include "client/protocol.h"

namespace cairn::node {

RequestWorker::~RequestWorker() { stop(); }

void RequestWorker::start() {
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

void RequestWorker::submit(UniqueFd connection, ObjectIndex object, bool durable) {
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(Request{std::move(connection), object, durable});
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
    answer.error = -flusher_.flush_now(request.object, request.durable);
    (void)!::send(request.connection.get(), &answer, sizeof answer, MSG_NOSIGNAL);
    lock.lock();
  }
}

}  // namespace cairn::node
