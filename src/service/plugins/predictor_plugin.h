// SPDX-License-Identifier: Apache-2.0
// A predictor from a shared object (cairn/predictor_plugin.h), which is not trusted to behave.
//
// The thread that follows the streams never waits for it. A stream hands its reads over to the
// queue of the plugin (service/plugins/predictor_queue.h), and takes the answer, up to 256 reads,
// at one of its next reads. The stream may have read on since the question: predict() goes on
// behind that (service/plugins/forecast.h).
//
// A stream asks when half of the answer is used up or something else was read, but after its first
// 16 reads only every fourth read, and down to every 64th while answers are wrong or empty. It
// hands its reads over at the latest when there are 64 of them.
//
// A call that throws or does not return in time ends it: it foresees nothing from then on, and the
// listener gets the reason, once. The parts of an answer that cannot be true are left out; the
// listener hears of each such fault once. A call that never returns costs idle processor time only.
// A crash of the object is a crash of the service.
//
// Thread safety: make(), and the predictors, as all predictors: one thread; the rest any. The
// listener is called by the queue's thread, with no lock held. Ownership: the predictors share the
// queue; they may outlive this, and foresee nothing then.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "policy/prefetch/predictor_supply.h"
#include "service/plugins/predictor_queue.h"

namespace cairn {

class PredictorPlugin final : public PredictorSupply {
 public:
  // Nobody waits for a call, so that this only bounds how long a loop takes a processor.
  static constexpr std::chrono::milliseconds kTimeLimit{500};

  using Listener = PredictorQueue::Listener;

  // Errors: as of PluginObject::load() and description(); kInvalid also when a function is missing
  // or its name is that of a built-in predictor. The message names the path.
  static Result<std::unique_ptr<PredictorPlugin>> load(
      const std::string& path, Listener listener,
      std::chrono::milliseconds time_limit = kTimeLimit);

  // Gives back the states of streams that have ended, as long as that takes no more than a second.
  ~PredictorPlugin() override;

  const char* name() const override;
  std::unique_ptr<Predictor> make(const std::int64_t& file_blocks) override;

  // False once it has ended.
  bool is_trusted() const;
  // Waits until all questions so far are answered.
  void settle();

 private:
  explicit PredictorPlugin(std::shared_ptr<PredictorQueue> queue) : queue_(std::move(queue)) {}

  const std::shared_ptr<PredictorQueue> queue_;
};

}  // namespace cairn
