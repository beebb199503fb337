// SPDX-License-Identifier: Apache-2.0
// Where the streams' questions to a predictor from a shared object are answered: one after the
// other, each on the object's own thread, of which the queue's thread waits no longer than a limit.
//
// A question is a stream: what it has read since its last question, and, when it is answered, what
// comes next. The first one makes the plugin's state, close() gives it back.
//
//   the predictor owns the stream's values -- ask() --> the queue does -- is_asked is false -->
//   back
//
// Bounds: kWaitingMax questions wait, one of each stream, and besides them the streams that ended.
//
// Thread safety: any thread; the values of a stream belong to one side at a time, as drawn. The
// listener is called by the queue's thread, with no lock held. Ownership: streams are shared with
// the calls, which may be late; a late call's stream is never touched again.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "policy/prefetch/predictor.h"
#include "service/plugins/plugin_object.h"

namespace cairn {

class PredictorQueue {
 public:
  static constexpr std::size_t kWaitingMax = 4096;
  static constexpr std::chrono::seconds kStopLimit{1};

  using Listener = std::function<void(const std::string& complaint)>;

  struct Stream {
    std::vector<cairn_block_run> reads;
    std::uint64_t file_blocks = 0;
    std::vector<BlockRun> next;  // the answer
    bool is_declined = false;    // the plugin has nothing to say about it
    std::atomic<bool> is_asked{false};
    // Only the plugin's thread uses it.
    void* state = nullptr;
    bool is_begun = false;
  };
  using StreamPtr = std::shared_ptr<Stream>;

  PredictorQueue(std::shared_ptr<PluginObject> object, const cairn_predictor& predictor,
                 Listener listener, std::chrono::milliseconds time_limit);
  ~PredictorQueue() { stop(); }
  PredictorQueue(const PredictorQueue&) = delete;
  PredictorQueue& operator=(const PredictorQueue&) = delete;

  // Errors: kUnavailable (no thread).
  Status start();
  // Answers what waits, for at most kStopLimit, and nothing from then on.
  void stop();

  const std::string& name() const { return object_->name(); }
  // False once the plugin gets no more questions.
  bool is_trusted() const { return is_trusted_.load(std::memory_order_relaxed); }
  // False when too many wait. Requires: no question about the stream is waiting.
  bool ask(const StreamPtr& stream);
  // The stream has ended; after its last question is answered.
  void close(StreamPtr stream);
  // Waits until no question is open.
  void settle();

 private:
  struct Call;
  struct Request {
    StreamPtr stream;
    bool is_close = false;
  };
  enum class Fault : std::uint8_t { kTooMany, kNoBlocks, kBehindEnd };

  void work();
  void serve(const Request& request);
  std::vector<BlockRun> checked(const Call& call);
  void drop(const std::string& why);
  void complain(Fault fault, const std::string& what);

  const std::shared_ptr<PluginObject> object_;
  const cairn_predictor& predictor_;
  const Listener listener_;
  const std::chrono::milliseconds time_limit_;
  std::atomic<bool> is_trusted_{true};
  unsigned said_ = 0;  // a bit for each fault; of the queue's thread

  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable idle_;
  std::deque<Request> waiting_;
  bool is_busy_ = false;
  bool is_stopping_ = false;
  std::chrono::steady_clock::time_point stop_at_;
  std::thread thread_;
};

}  // namespace cairn
