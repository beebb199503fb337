// SPDX-License-Identifier: Apache-2.0
#include "service/plugins/predictor_queue.h"

#include <pthread.h>

#include <algorithm>
#include <limits>
#include <system_error>
#include <utility>

#include "base/ids.h"

namespace cairn {

// The data that one trip to the plugin reads and writes. A late one keeps it.
struct PredictorQueue::Call {
  const PluginGuard& guard;
  const cairn_predictor& predictor;
  const StreamPtr stream;
  std::array<cairn_block_run, CAIRN_PREDICTOR_RUNS_MAX> next{};
  std::uint32_t count = 0;
  PluginGuard::Thrown thrown;

  cairn_read_stream view() const {
    return {stream->file_blocks, static_cast<std::uint32_t>(kBlockBytes), 0};
  }
  void ask() {
    if (!stream->is_begun) {
      stream->is_begun = true;
      stream->state = guard.create(predictor, view(), &thrown);
    }
    if (stream->state == nullptr) return;
    const PluginGuard::Question question{.state = stream->state,
                                         .stream = view(),
                                         .reads = stream->reads.data(),
                                         .read_count = stream->reads.size(),
                                         .next = next.data(),
                                         .next_max = CAIRN_PREDICTOR_RUNS_MAX};
    count = guard.foresee(predictor, question, &thrown);
  }
  void close() {
    if (stream->state != nullptr) guard.destroy(predictor, stream->state, &thrown);
  }
};

PredictorQueue::PredictorQueue(std::shared_ptr<PluginObject> object,
                               const cairn_predictor& predictor, Listener listener,
                               std::chrono::milliseconds time_limit)
    : object_(std::move(object)),
      predictor_(predictor),
      listener_(std::move(listener)),
      time_limit_(time_limit) {}

Status PredictorQueue::start() {
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {
    return object_->fault("got no thread", StatusCode::kUnavailable);
  }
  return Status::ok();
}

void PredictorQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    stop_at_ = std::chrono::steady_clock::now() + kStopLimit;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  is_trusted_.store(false);
}

bool PredictorQueue::ask(const StreamPtr& stream) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stopping_ || waiting_.size() >= kWaitingMax) return false;
    stream->is_asked.store(true, std::memory_order_relaxed);
    waiting_.push_back(Request{stream, false});
  }
  changed_.notify_one();
  return true;
}

void PredictorQueue::close(StreamPtr stream) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stopping_ || !is_trusted()) return;
    waiting_.push_back(Request{std::move(stream), true});
  }
  changed_.notify_one();
}

void PredictorQueue::settle() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return waiting_.empty() && !is_busy_; });
}

void PredictorQueue::work() {
  pthread_setname_np(pthread_self(), "cairn-plugin");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !waiting_.empty() || is_stopping_; });
    const bool is_over = is_stopping_ && std::chrono::steady_clock::now() >= stop_at_;
    if (waiting_.empty() || is_over) return;
    const Request request = std::move(waiting_.front());
    waiting_.pop_front();
    is_busy_ = true;
    lock.unlock();
    if (is_trusted()) serve(request);
    lock.lock();
    is_busy_ = false;
    if (waiting_.empty()) idle_.notify_all();
  }
}

void PredictorQueue::serve(const Request& request) {
  const auto call =
      std::make_shared<Call>(Call{object_->guard(), predictor_, request.stream, {}, 0, {}});
  const auto job = [call, is_close = request.is_close] { is_close ? call->close() : call->ask(); };
  std::string thrown;
  switch (object_->thread().run(job, time_limit_, &thrown)) {
    case GuardedThread::Outcome::kDone:
      break;
    case GuardedThread::Outcome::kThrew:
      return drop("threw " + thrown);
    case GuardedThread::Outcome::kLate:
      return drop(PluginObject::late_text(time_limit_));
    case GuardedThread::Outcome::kBusy:
    case GuardedThread::Outcome::kNoThread:
      break;  // unanswered; not told, because it may get one again
  }
  if (call->thrown.text[0] != '\0') return drop(std::string("threw ") + call->thrown.text);
  if (request.is_close) return;
  Stream& stream = *request.stream;
  stream.is_declined = stream.is_begun && stream.state == nullptr;
  stream.next = checked(*call);
  stream.reads.clear();
  stream.is_asked.store(false, std::memory_order_release);
}

// Nothing of an answer is taken for granted.
std::vector<BlockRun> PredictorQueue::checked(const Call& call) {
  std::vector<BlockRun> runs;
  if (call.count > call.next.size()) {
    complain(Fault::kTooMany, "foresees " + std::to_string(call.count) +
                                  " reads where there is room "
                                  "for " +
                                  std::to_string(call.next.size()) + "; such answers are not used");
    return runs;
  }
  const auto end_of_file = static_cast<std::int64_t>(call.stream->file_blocks);
  runs.reserve(call.count);
  for (std::uint32_t at = 0; at < call.count; ++at) {
    const cairn_block_run& run = call.next[at];
    const std::string text =
        "foresees " + std::to_string(run.count) + " blocks from block " + std::to_string(run.first);
    constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
    if (run.first < 0 || run.count == 0 || run.first > kLast - run.count) {
      complain(Fault::kNoBlocks, text + ", which are none; such reads are left out");
    } else if (run.first >= end_of_file) {
      complain(Fault::kBehindEnd, text + " of a file of " + std::to_string(end_of_file) +
                                      "; what lies behind the end is left out");
    } else {
      const std::int64_t count = std::min<std::int64_t>(run.count, end_of_file - run.first);
      runs.push_back(BlockRun{run.first, static_cast<std::uint32_t>(count)});
    }
  }
  return runs;
}

void PredictorQueue::drop(const std::string& why) {
  is_trusted_.store(false);
  if (listener_) listener_(object_->title() + " " + why + "; it is not asked any more");
}

void PredictorQueue::complain(Fault fault, const std::string& what) {
  const unsigned bit = 1U << static_cast<unsigned>(fault);
  if ((said_ & bit) != 0) return;
  said_ |= bit;
  if (listener_) listener_(object_->title() + " " + what);
}

}  // namespace cairn
