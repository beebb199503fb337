// SPDX-License-Identifier: Apache-2.0
// What prediction is worth, without a cache behind it. After each read the model fetches the
// foreseen blocks, so many reads ahead; a block arrives some reads later and stays in a buffer,
// first in first out, until it is read or pushed out.
//
// Thread safety: one thread.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>

#include "policy/prefetch/chooser.h"
#include "policy/prefetch/testing/patterns.h"

namespace cairn::testing {

// Shares of the blocks read (of those fetched: accuracy).
struct PrefetchResult {
  double coverage = 0;  // were there
  double late = 0;      // were on their way
  double accuracy = 1;  // fetched and read later
  double waste = 0;     // fetched and never read
};

// One predictor for each stream, made by `make(stream)`; all are of one file.
class PrefetchModel {
 public:
  static constexpr std::size_t kReadsAhead = 8;
  static constexpr std::size_t kReadsUntilArrival = 4;
  static constexpr std::size_t kBufferBlocks = 256;

  explicit PrefetchModel(std::size_t buffer_blocks = kBufferBlocks)
      : buffer_blocks_(buffer_blocks) {}

  // `foresee(stream, run, next)`: the stream reads the run; returns how many of `next` it fills.
  template <typename Foresee>
  PrefetchResult measure(const AccessPattern& pattern, Foresee foresee) {
    std::array<BlockRun, kReadsAhead> next;
    last_.assign(pattern.streams, BlockRun{-1, 0});
    for (now_ = 0; now_ < pattern.reads.size(); ++now_) {
      const StreamRead& read = pattern.reads[now_];
      is_counting_ = now_ >= pattern.learned_after;
      let_arrive();
      use(read);
      const std::size_t count = foresee(read.stream, read.run, std::span<BlockRun>(next));
      for (std::size_t at = 0; at < count; ++at) fetch(next[at], read.run);
    }
    PrefetchResult result;
    const auto share = [&](std::uint64_t part) {
      return read_ == 0 ? 0 : static_cast<double>(part) / static_cast<double>(read_);
    };
    result.coverage = share(covered_);
    result.late = share(late_);
    result.waste = share(fetched_ - std::min(fetched_, used_));
    if (fetched_ != 0) result.accuracy = static_cast<double>(used_) / static_cast<double>(fetched_);
    return result;
  }

 private:
  struct Fetched {
    std::uint64_t number = 0;
    bool has_arrived = false;
    bool counts = false;
  };
  struct Event {
    std::size_t when = 0;
    std::int64_t block = 0;
    std::uint64_t number = 0;
  };

  void let_arrive() {
    while (!on_their_way_.empty() && on_their_way_.front().when <= now_) {
      const Event event = on_their_way_.front();
      on_their_way_.pop_front();
      const auto found = buffer_.find(event.block);
      if (found == buffer_.end() || found->second.number != event.number) continue;
      found->second.has_arrived = true;
      ++arrived_;
      arrivals_.push_back(event);
      while (arrived_ > buffer_blocks_) push_out();
    }
  }
  void push_out() {
    const Event oldest = arrivals_.front();
    arrivals_.pop_front();
    const auto found = buffer_.find(oldest.block);
    if (found == buffer_.end() || found->second.number != oldest.number) return;
    buffer_.erase(found);
    --arrived_;
  }
  // What the stream has just read is still in its hands.
  void use(const StreamRead& read) {
    BlockRun& last = last_[read.stream];
    for (std::int64_t block = read.run.first; block < read.run.end(); ++block) {
      if (block < last.first || block >= last.end()) use(block);
    }
    last = read.run;
  }
  void use(std::int64_t block) {
    read_ += is_counting_ ? 1 : 0;
    const auto found = buffer_.find(block);
    if (found == buffer_.end()) return;
    if (is_counting_) ++(found->second.has_arrived ? covered_ : late_);
    used_ += found->second.counts ? 1 : 0;
    arrived_ -= found->second.has_arrived ? 1 : 0;
    buffer_.erase(found);
  }
  void fetch(BlockRun run, BlockRun reading) {
    for (std::int64_t block = run.first; block < run.end(); ++block) {
      const bool is_being_read = block >= reading.first && block < reading.end();
      if (block < 0 || is_being_read || buffer_.contains(block)) continue;
      buffer_[block] = Fetched{++number_, false, is_counting_};
      on_their_way_.push_back(Event{now_ + kReadsUntilArrival, block, number_});
      fetched_ += is_counting_ ? 1 : 0;
    }
  }

  const std::size_t buffer_blocks_;
  std::unordered_map<std::int64_t, Fetched> buffer_;
  std::deque<Event> on_their_way_;
  std::deque<Event> arrivals_;
  std::vector<BlockRun> last_;  // of each stream
  std::size_t now_ = 0;
  std::size_t arrived_ = 0;
  std::uint64_t number_ = 0;
  bool is_counting_ = true;
  std::uint64_t read_ = 0;
  std::uint64_t covered_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t fetched_ = 0;
};

// By one predictor of the table alone.
inline PrefetchResult measure_predictor(const AccessPattern& pattern, const PredictorMaker& maker) {
  NodeKnowledge node;
  const FileKnowledgePtr file = node.file(1);
  StreamHints hints;
  std::vector<std::unique_ptr<Predictor>> streams;
  for (unsigned stream = 0; stream < pattern.streams; ++stream)
    streams.push_back(maker.make(PredictorSources{*file, node, hints}));
  return PrefetchModel().measure(pattern,
                                 [&](unsigned stream, BlockRun run, std::span<BlockRun> next) {
                                   streams[stream]->observe(run);
                                   return streams[stream]->predict(next);
                                 });
}

// By choosers. `order`: that is declared for all streams, or null.
inline PrefetchResult measure_chooser(const AccessPattern& pattern, DeclaredOrder order = nullptr) {
  NodeKnowledge node;
  std::vector<std::unique_ptr<Chooser>> streams;
  for (unsigned stream = 0; stream < pattern.streams; ++stream) {
    streams.push_back(std::make_unique<Chooser>(node.file(1), node));
    streams.back()->hints().declare(order);
  }
  return PrefetchModel().measure(pattern,
                                 [&](unsigned stream, BlockRun run, std::span<BlockRun> next) {
                                   streams[stream]->observe(run);
                                   return streams[stream]->predict(next).count;
                                 });
}

}  // namespace cairn::testing
