// SPDX-License-Identifier: Apache-2.0
#include "service/durability/durability_worker.h"

#include <errno.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/crash_point.h"
#include "frontends/protocol/question.h"

namespace cairn::node {
namespace {

using Outcome = LogAttempt::Outcome;

// More than this much dirty data of one file is logged beside the others.
constexpr std::uint32_t kBlocksMax = 64;
// A descriptor that its client has just sent is waited for, and looked for so often.
constexpr std::int64_t kArrivalNs = 50'000'000;
constexpr auto kArrivalPause = std::chrono::microseconds(100);

}  // namespace

void DurabilityWorker::start(const char* name) {
  CAIRN_CHECK(!thread_.joinable());
  thread_ = std::thread([this, name] { work(name); });
}

void DurabilityWorker::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void DurabilityWorker::submit(Asker asker, ObjectIndex object) {
  Request request;
  request.asker.emplace(std::move(asker));
  request.object = object;
  enqueue(std::move(request));
}

void DurabilityWorker::submit_cut(Asker asker, ObjectIndex object, std::uint64_t size) {
  Request request;
  request.asker.emplace(std::move(asker));
  request.object = object;
  request.cut = size;
  enqueue(std::move(request));
}

void DurabilityWorker::submit_names(Asker asker, UniqueFd directory, bool in_store) {
  Request request;
  request.asker.emplace(std::move(asker));
  request.directory = std::make_shared<const UniqueFd>(std::move(directory));
  if (in_store) return store(std::move(request), Outcome::kNeedsStore);
  enqueue(std::move(request));
}

void DurabilityWorker::enqueue(Request request) {
  request.asked_ns = monotonic_ns();
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(request));
  }
  changed_.notify_one();
}

void DurabilityWorker::work(const char* name) {
  pthread_setname_np(pthread_self(), name);
  std::vector<Request> early;
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto has_work = [this] { return stopping_ || !waiting_.empty(); };
    if (early.empty()) {
      changed_.wait(lock, has_work);
    } else {
      changed_.wait_for(lock, kArrivalPause, has_work);
    }
    std::vector<Request> round = std::move(early);
    std::move(waiting_.begin(), waiting_.end(), std::back_inserter(round));
    waiting_.clear();
    if (round.empty() && stopping_) return;
    lock.unlock();
    early = serve(std::move(round));
    lock.lock();
  }
}

bool DurabilityWorker::is_on_its_way(const Request& request, const StoreFilePtr& file) const {
  const Object& object = with_.memory.objects().at(request.object);
  return file == nullptr && object.dirty_blocks.load() != 0 &&
         monotonic_ns() - request.asked_ns < kArrivalNs;
}

LogAttempt DurabilityWorker::attempt(const Request& request, const StoreFilePtr& file) {
  if (request.directory != nullptr) return with_.names.log(request.directory->get());
  if (request.cut == protocol::kCutAway) return with_.logged.log_removed(request.object);
  if (request.cut) return with_.logged.log_cut(request.object, *request.cut);
  return with_.logged.log_changes(request.object, file ? file->fd.get() : -1,
                                  LoggedFiles::Why::kAsked);
}

std::vector<DurabilityWorker::Request> DurabilityWorker::serve(std::vector<Request> requests) {
  std::vector<Request> early;
  std::vector<Request> logged;
  for (Request& request : requests) {
    const bool is_of_names = request.directory != nullptr;
    const StoreFilePtr file = is_of_names ? nullptr : with_.files.find(request.object);
    if (!request.cut && !is_of_names && is_on_its_way(request, file)) {
      early.push_back(std::move(request));
      continue;
    }
    const bool is_much =
        !is_of_names && with_.memory.objects().at(request.object).dirty_blocks.load() > kBlocksMax;
    if (!request.cut && is_much) {
      const ObjectIndex object = request.object;
      with_.storing.submit(std::move(*request.asker), [this, object] { return log_much(object); });
      continue;
    }
    const LogAttempt attempt = this->attempt(request, file);
    CAIRN_CRASH_POINT("durability.logged");
    if (attempt.outcome == Outcome::kLogged) {
      request.upto = attempt.upto;
      logged.push_back(std::move(request));
    } else {
      store(std::move(request), attempt.outcome);
    }
  }
  if (!logged.empty()) commit(logged);
  with_.retirement.watch();
  return early;
}

void DurabilityWorker::commit(std::vector<Request>& logged) {
  durable::Lsn last = durable::Lsn::kNone;
  for (const Request& request : logged) last = std::max(last, request.upto);
  const Status done = last == durable::Lsn::kNone
                          ? Status::ok()
                          : with_.logged.log().commit_within(last, kCommitMax);
  CAIRN_CRASH_POINT("durability.committed");
  with_.counts.rounds.fetch_add(1, std::memory_order_relaxed);
  for (Request& request : logged) {
    if (done) {
      with_.counts.logged.fetch_add(1, std::memory_order_relaxed);
      request.asker->answer(0);
    } else {
      store(std::move(request), Outcome::kFailed);
    }
  }
}

// A client that cuts a file has its lock: it cannot be stored meanwhile.
void DurabilityWorker::store(Request request, Outcome why) {
  with_.counts.stored.fetch_add(1, std::memory_order_relaxed);
  if (why == Outcome::kFull) with_.counts.stored_full.fetch_add(1, std::memory_order_relaxed);
  if (why == Outcome::kFailed) with_.counts.stored_failed.fetch_add(1, std::memory_order_relaxed);
  if (request.directory != nullptr) return store_names(std::move(request));
  if (request.cut) return request.asker->answer(why == Outcome::kFull ? -ENOSPC : -EIO);
  const ObjectIndex object = request.object;
  with_.storing.submit(std::move(*request.asker),
                       [this, object] { return with_.flusher.flush_now(object, true); });
}

void DurabilityWorker::store_names(Request request) {
  const SharedFd directory = request.directory;
  with_.storing.submit(std::move(*request.asker),
                       [this, directory] { return with_.names.store(directory->get()); });
}

int DurabilityWorker::log_much(ObjectIndex object) {
  const StoreFilePtr file = with_.files.find(object);
  const LogAttempt attempt =
      with_.logged.log_changes(object, file ? file->fd.get() : -1, LoggedFiles::Why::kAsked);
  if (attempt.outcome == Outcome::kLogged &&
      with_.logged.log().commit_within(attempt.upto, kCommitMax)) {
    with_.counts.logged.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  with_.counts.stored.fetch_add(1, std::memory_order_relaxed);
  if (attempt.outcome == Outcome::kFull)
    with_.counts.stored_full.fetch_add(1, std::memory_order_relaxed);
  return with_.flusher.flush_now(object, true);
}

}  // namespace cairn::node
