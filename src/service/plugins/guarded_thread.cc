// SPDX-License-Identifier: Apache-2.0
#include "service/plugins/guarded_thread.h"

#include <cxxabi.h>
#include <pthread.h>
#include <sched.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace cairn {
namespace {

// Empty when it returned.
std::string what_is_thrown_by(const std::function<void()>& job) {
  try {
    job();
    return {};
  } catch (const abi::__forced_unwind&) {
    // pthread_exit() of the job: swallowing it would abort the process.
    throw;
  } catch (const std::exception& error) {
    return std::string("an exception: ") + error.what();
  } catch (...) {
    return "an exception";
  }
}

}  // namespace

// State of the thread:
//
//   kIdle     waits for a job            run() -> kRunning
//   kRunning  has one                    the thread: on time -> kEnded, late -> kIdle, and it ends
//   kEnded    run() has not seen it yet  run() -> kIdle
struct GuardedThread::Shared {
  enum class State { kIdle, kRunning, kEnded };

  std::mutex mutex;
  std::condition_variable begun;
  std::condition_variable ended;
  std::thread thread;  // joinable while one waits for jobs
  std::function<void()> job;
  std::string thrown;
  State state = State::kIdle;
  bool late = false;
  bool stopping = false;
};

GuardedThread::GuardedThread() : shared_(std::make_shared<Shared>()) {}

GuardedThread::~GuardedThread() {
  std::thread idle;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
    idle = std::move(shared_->thread);
    shared_->begun.notify_all();
  }
  if (idle.joinable()) idle.join();
}

void GuardedThread::work(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->begun.wait(
        lock, [&] { return shared->state == Shared::State::kRunning || shared->stopping; });
    if (shared->state != Shared::State::kRunning) return;
    std::function<void()> job = std::exchange(shared->job, nullptr);
    lock.unlock();
    std::string thrown = what_is_thrown_by(job);
    // A late job may be the last to own the object whose destructor takes the lock.
    job = nullptr;
    lock.lock();
    const bool is_late = std::exchange(shared->late, false);
    shared->state = is_late ? Shared::State::kIdle : Shared::State::kEnded;
    if (is_late) return;
    shared->thrown = std::move(thrown);
    shared->ended.notify_all();
  }
}

GuardedThread::Outcome GuardedThread::run(std::function<void()> job,
                                          std::chrono::milliseconds limit, std::string* thrown) {
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex);
  if (shared.state != Shared::State::kIdle) return Outcome::kBusy;
  if (!shared.thread.joinable()) {
    try {
      shared.thread = std::thread([kept = shared_] { work(kept); });
    } catch (const std::system_error&) {
      return Outcome::kNoThread;
    }
  }
  shared.job = std::move(job);
  shared.state = Shared::State::kRunning;
  shared.begun.notify_one();
  if (!shared.ended.wait_for(lock, limit, [&] { return shared.state == Shared::State::kEnded; })) {
    shared.late = true;
    const sched_param parameters{};
    pthread_setschedparam(shared.thread.native_handle(), SCHED_IDLE, &parameters);
    shared.thread.detach();
    return Outcome::kLate;
  }
  shared.state = Shared::State::kIdle;
  *thrown = std::exchange(shared.thrown, {});
  return thrown->empty() ? Outcome::kDone : Outcome::kThrew;
}

}  // namespace cairn
