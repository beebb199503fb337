// SPDX-License-Identifier: Apache-2.0
// What prediction is worth in front of a slow device, in simulated time: a program reads pieces of
// a file and computes after each batch of them, while one device serves its misses and, when it is
// idle, what the predictors foresee, side by side what lies side by side. RAM keeps what was used
// last; what waits in it for its use is bounded, as service/fetching/prefetcher.h has it.
//
// Thread safety: one thread. Units: blocks; nanoseconds of simulated time.
// Errors: reads before the beginning of the file are the caller's mistake (checked).
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <unordered_map>

#include "base/check.h"
#include "policy/prefetch/chooser.h"
#include "policy/prefetch/lookahead.h"

namespace cairn::testing {

struct DeviceModelOptions {
  std::int64_t file_blocks = 0;
  std::size_t ram_blocks = 512;
  std::size_t unread_blocks_max = 128;  // fetched and waiting
  std::int64_t request_ns = 4'200'000;
  std::int64_t block_ns = 400'000;
  std::int64_t compute_ns = 6'000'000;  // for each read
  unsigned batch = 1;                   // reads between which nothing is computed
};

// Blocks.
struct DeviceModelResult {
  std::uint64_t fetched = 0;
  std::uint64_t used = 0;  // of those fetched
  std::uint64_t late = 0;  // of those used
  std::uint64_t missed = 0;
  std::uint64_t read = 0;
  std::uint64_t requests = 0;  // for what was fetched
  std::int64_t end_ns = 0;
  std::int64_t predict_ns = 0;  // of real time, in the predictors
  std::uint64_t accesses = 0;
};

class DeviceModel {
 public:
  static constexpr unsigned kRequestBlocksMax = 16;

  explicit DeviceModel(const DeviceModelOptions& options) : options_(options) { open(); }

  // The program opens the file anew.
  void open() {
    chooser_ = std::make_unique<Chooser>(node_.file(1), node_);
    lookahead_ = node_.file(1)->lookahead.begin();
    wanted_.clear();
  }
  void read(BlockRun run) {
    CAIRN_CHECK(run.first >= 0 && run.count > 0);
    bool is_late = false;
    for (std::int64_t block = run.first; block < run.end(); ++block) is_late |= use(block);
    if (is_late) {
      lookahead_.on_late(run.count);
      node_.file(1)->lookahead.learn(lookahead_);
    }
    foresee(run);
    if (++result_.accesses % options_.batch != 0) return;
    const std::int64_t until = now_ + options_.compute_ns * options_.batch;
    while (device_free_ < until && fetch()) {
    }
    now_ = until;
  }
  DeviceModelResult result() {
    result_.end_ns = now_;
    return result_;
  }

 private:
  struct Held {
    std::list<std::int64_t>::iterator place;
    std::int64_t arrives = 0;
    bool is_unread = false;
  };

  // Returns: whether it came too late although it was foreseen.
  bool use(std::int64_t block) {
    ++result_.read;
    const auto found = held_.find(block);
    if (found == held_.end()) return miss(block);
    Held& held = found->second;
    const bool is_late = held.arrives > now_;
    if (held.is_unread) {
      ++result_.used;
      --unread_;
      result_.late += is_late ? 1 : 0;
    }
    held.is_unread = false;
    now_ = std::max(now_, held.arrives);
    order_.splice(order_.begin(), order_, held.place);
    return is_late;
  }
  bool miss(std::int64_t block) {
    ++result_.missed;
    now_ = std::max(now_, device_free_) + options_.request_ns + options_.block_ns;
    device_free_ = now_;
    hold(block, now_, false);
    return std::any_of(wanted_.begin(), wanted_.end(), [&](const BlockRun& wanted) {
      return wanted.first <= block && block < wanted.end();
    });
  }
  void hold(std::int64_t block, std::int64_t arrives, bool is_unread) {
    order_.push_front(block);
    held_[block] = Held{order_.begin(), arrives, is_unread};
    unread_ += is_unread ? 1 : 0;
    if (held_.size() <= options_.ram_blocks) return;
    const auto oldest = held_.find(order_.back());
    if (oldest->second.is_unread) {
      --unread_;
      lookahead_.on_evicted_unused();
    }
    held_.erase(oldest);
    order_.pop_back();
  }
  void foresee(BlockRun run) {
    const auto began = std::chrono::steady_clock::now();
    chooser_->set_file_blocks(options_.file_blocks);
    chooser_->observe(run);
    const unsigned factor = chooser_->hints().ahead_factor();
    room_.resize(lookahead_.runs_ahead(std::min(run.count, 256U), factor));
    const std::size_t count = chooser_->predict(room_).count;
    result_.predict_ns += (std::chrono::steady_clock::now() - began).count();
    wanted_.clear();
    std::uint64_t blocks = 0;
    for (std::size_t at = 0; at < count && blocks < lookahead_.blocks_ahead(factor); ++at) {
      const std::int64_t first = std::max<std::int64_t>(0, room_[at].first);
      const std::int64_t end = std::min(room_[at].end(), options_.file_blocks);
      if (end <= first) continue;
      wanted_.push_back(BlockRun{first, static_cast<std::uint32_t>(end - first)});
      blocks += wanted_.back().count;
    }
  }
  // One request, of what is wanted soonest. False when there is nothing to do.
  bool fetch() {
    if (unread_ >= options_.unread_blocks_max) return false;
    BlockRun taken{0, 0};
    while (!wanted_.empty() && taken.count < kRequestBlocksMax) {
      BlockRun& front = wanted_.front();
      const bool is_before = taken.count != 0 && front.first + 1 == taken.first;
      const bool joins = taken.count == 0 || front.first == taken.end() || is_before;
      const bool is_held = held_.contains(front.first);
      if (!joins || (is_held && taken.count != 0)) break;
      if (!is_held) {
        const bool begins = taken.count == 0 || is_before;
        taken = BlockRun{begins ? front.first : taken.first, taken.count + 1};
      }
      ++front.first;
      if (--front.count == 0) wanted_.pop_front();
    }
    if (taken.count == 0) return false;
    device_free_ = std::max(now_, device_free_) + options_.request_ns +
                   options_.block_ns * static_cast<std::int64_t>(taken.count);
    for (std::int64_t block = taken.first; block < taken.end(); ++block)
      hold(block, device_free_, true);
    result_.fetched += taken.count;
    ++result_.requests;
    return true;
  }

  const DeviceModelOptions options_;
  NodeKnowledge node_;
  std::unique_ptr<Chooser> chooser_;
  Lookahead lookahead_;
  std::deque<BlockRun> wanted_;
  std::vector<BlockRun> room_;
  std::list<std::int64_t> order_;  // used last first
  std::unordered_map<std::int64_t, Held> held_;
  std::size_t unread_ = 0;
  std::int64_t now_ = 0;
  std::int64_t device_free_ = 0;
  DeviceModelResult result_;
};

}  // namespace cairn::testing
