// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/request_worker.h"

#include <utility>

#include "base/check.h"

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

void RequestWorker::submit(Asker asker, Work work) {
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(Request{std::move(asker), std::move(work)});
  }
  changed_.notify_one();
}

void RequestWorker::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !requests_.empty(); });
    if (requests_.empty()) return;
    Request request = std::move(requests_.front());
    requests_.pop_front();
    lock.unlock();
    request.asker.answer(request.work());
    lock.lock();
  }
}

}  // namespace cairn::node
