// SPDX-License-Identifier: Apache-2.0
#include "service/plugins/predictor_plugin.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "policy/prefetch/predictors.h"
#include "service/plugins/forecast.h"

namespace cairn {
namespace {

// Loading reads files, so it may take longer than a question.
constexpr int kPredictorLoadLimits = 2;

constexpr PluginKind<cairn_predictor> kPredictorKind = {
    CAIRN_PREDICTOR_ENTRY_POINT, CAIRN_PREDICTOR_ABI_VERSION, &PluginGuard::describe_predictor};

// The first reads of a stream go to the plugin one by one, so that it knows a pattern at once.
constexpr std::uint64_t kReadsFirst = 16;
// Reads between two questions, later.
constexpr std::uint32_t kGapMin = 4;
constexpr std::uint32_t kGapMax = 64;
constexpr std::size_t kUnsentEnough = 64;
// The plugin does not keep up: it does not get all reads.
constexpr std::size_t kUnsentMax = 256;

struct LoadedPredictor : PluginObject {
  explicit LoadedPredictor(const std::string& path) : PluginObject("predictor", path) {}

  const cairn_predictor* predictor = nullptr;

  Status read() {
    const auto found = description(kPredictorKind);
    if (!found) return found.status();
    predictor = *found;
    if (predictor->create == nullptr || predictor->destroy == nullptr)
      return fault("has no functions to create and destroy the state of a stream");
    if (predictor->observe == nullptr || predictor->predict == nullptr)
      return fault("has no functions to observe and predict with");
    const bool is_taken =
        std::any_of(kPredictorMakers.begin(), kPredictorMakers.end(),
                    [this](const PredictorMaker& maker) { return maker.name == name(); });
    if (is_taken) return fault("has the name of a built-in predictor, " + name());
    return Status::ok();
  }
};

class StreamPredictor final : public Predictor {
 public:
  StreamPredictor(std::shared_ptr<PredictorQueue> queue, const std::int64_t& file_blocks)
      : queue_(std::move(queue)),
        file_blocks_(file_blocks),
        stream_(std::make_shared<PredictorQueue::Stream>()) {}
  ~StreamPredictor() override {
    if (was_asked_) queue_->close(std::move(stream_));
  }

  const char* name() const override { return queue_->name().c_str(); }

  void observe(BlockRun run) override {
    if (is_over()) return;
    if (is_waiting_ && !stream_->is_asked.load(std::memory_order_acquire)) take_answer();
    forecast_.pass(run);
    if (unsent_.size() == kUnsentMax)
      unsent_.erase(unsent_.begin(), unsent_.begin() + kUnsentMax / 2);
    unsent_.push_back(run);
    ++reads_;
    ++reads_since_;
    if (!is_waiting_ && is_due()) ask();
  }

  std::size_t predict(std::span<BlockRun> next) const override {
    return is_over() ? 0 : forecast_.copy(next);
  }

 private:
  bool is_over() const { return is_declined_ || !queue_->is_trusted(); }

  void take_answer() {
    is_waiting_ = false;
    is_declined_ = stream_->is_declined;
    const bool was_wrong = stream_->next.empty() || forecast_.misses() > forecast_.hits();
    if (reads_ > kReadsFirst) gap_ = was_wrong ? std::min(2 * gap_, kGapMax) : kGapMin;
    forecast_.begin(std::move(stream_->next));
    // The reads since the question.
    for (const BlockRun& run : unsent_) forecast_.pass(run);
  }

  bool is_due() const {
    if (unsent_.size() >= kUnsentEnough) return true;
    const bool is_short = forecast_.left() < CAIRN_PREDICTOR_RUNS_MAX / 2;
    if (!is_short && forecast_.misses() == 0) return false;
    return reads_ <= kReadsFirst || reads_since_ >= gap_;
  }

  void ask() {
    reads_since_ = 0;
    stream_->reads.clear();
    for (const BlockRun& run : unsent_)
      stream_->reads.push_back(cairn_block_run{run.first, run.count, 0});
    stream_->file_blocks = static_cast<std::uint64_t>(std::max<std::int64_t>(file_blocks_, 0));
    if (!queue_->ask(stream_)) return;
    unsent_.clear();
    is_waiting_ = true;
    was_asked_ = true;
  }

  const std::shared_ptr<PredictorQueue> queue_;
  const std::int64_t& file_blocks_;
  PredictorQueue::StreamPtr stream_;
  Forecast forecast_;
  std::vector<BlockRun> unsent_;  // reads that the plugin has not been told of
  std::uint64_t reads_ = 0;
  std::uint32_t reads_since_ = 0;  // the last question
  std::uint32_t gap_ = kGapMin;
  bool is_waiting_ = false;  // for an answer
  bool was_asked_ = false;
  bool is_declined_ = false;
};

}  // namespace

Result<std::unique_ptr<PredictorPlugin>> PredictorPlugin::load(
    const std::string& path, Listener listener, std::chrono::milliseconds time_limit) {
  const auto plugin = std::make_shared<LoadedPredictor>(path);
  CAIRN_RETURN_IF_ERROR(
      plugin->load(time_limit * kPredictorLoadLimits, [plugin] { return plugin->read(); }));
  auto queue =
      std::make_shared<PredictorQueue>(plugin, *plugin->predictor, std::move(listener), time_limit);
  CAIRN_RETURN_IF_ERROR(queue->start());
  return std::unique_ptr<PredictorPlugin>(new PredictorPlugin(std::move(queue)));
}

PredictorPlugin::~PredictorPlugin() { queue_->stop(); }

const char* PredictorPlugin::name() const { return queue_->name().c_str(); }

std::unique_ptr<Predictor> PredictorPlugin::make(const std::int64_t& file_blocks) {
  return std::make_unique<StreamPredictor>(queue_, file_blocks);
}

bool PredictorPlugin::is_trusted() const { return queue_->is_trusted(); }

void PredictorPlugin::settle() { queue_->settle(); }

}  // namespace cairn
