// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/drain.h"

#include <errno.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <unordered_set>

#include "base/clock.h"

namespace cairn::node {
namespace {

constexpr std::size_t kPathsNamedMax = 100;
// Dirty data without a descriptor: its message may still be on the way.
constexpr std::int64_t kDescriptorWaitNanos = 2'000'000'000;
constexpr std::uint32_t kAttempts = 2;

// Short pauses at first, so that a small drain is not rounded up; each look costs a pass over the
// dirty map.
std::chrono::milliseconds pause_after(int rounds) {
  return std::chrono::milliseconds(rounds < 20 ? 1 : 10);
}

class Drain {
 public:
  Drain(const NodeMemory& memory, StoreFiles& files, Flusher& flusher, const DrainOptions& options)
      : memory_(memory), files_(files), flusher_(flusher), options_(options) {}

  DrainOutcome run() {
    for (const UnstoredFile& file : view_dirty(memory_, files_, 0).files) want(file.object);
    for (const StoreFilePtr& file : files_.snapshot()) {
      if (file->queued.load()) want(file->object);
    }
    if (!wanted_.empty()) {
      const Flusher::DrainScope scope(flusher_, {options_.device, !options_.is_sync});
      for (int round = 0; !is_over(); ++round) std::this_thread::sleep_for(pause_after(round));
    }
    DrainOutcome outcome;
    // A store that has not answered in time would not answer this in time either.
    if (!options_.is_sync && !is_given_up_) {
      outcome.sync_error = files_.make_durable();
      // A file may have been lost and dirty again since the drain began: nobody wanted that then.
      const bool has_failed = files_.unsynced().failures() != failures_;
      if (outcome.sync_error == 0 && has_failed) outcome.sync_error = EIO;
      files_.drop_idle();
    }
    look();
    if (outcome.sync_error != 0) left_ = list_unsynced(memory_, files_, kPathsNamedMax);
    name_files(memory_, files_, kPathsNamedMax, left_);
    outcome.stored = left_.empty() && !is_given_up_ && outcome.sync_error == 0;
    outcome.left = std::move(left_);
    outcome.seconds = static_cast<double>(monotonic_ns() - began_) / 1e9;
    return outcome;
  }

 private:
  void want(ObjectIndex object) {
    if (options_.device == 0 || raw(memory_.objects().at(object).store()) == options_.device)
      wanted_.insert(raw(object));
  }

  // Looks which of the files that were dirty at the beginning have not been stored since. A file
  // that has been stored is done with: it may have turned dirty again, and its descriptor, which
  // knows when it was stored, may be a new one. A look that finds nothing dirty is not enough: a
  // block may have been on its way from one tier to another.
  void look() {
    left_ = view_dirty(memory_, files_, 0).files;
    std::erase_if(left_, [this](const UnstoredFile& file) {
      return !wanted_.contains(raw(file.object)) || stored_.contains(raw(file.object)) ||
             file.passed_ns > began_;
    });
    for (const std::uint32_t index : wanted_) {
      const auto object = static_cast<ObjectIndex>(index);
      const Object& record = memory_.objects().at(object);
      const StoreFilePtr file = files_.find(object);
      const bool has_passed = file != nullptr && file->passed_ns.load() > began_;
      const bool is_clean =
          record.dirty_blocks.load() == 0 && !record.has(kObjectFailing | kObjectTimesDirty);
      if (has_passed || is_clean) stored_.insert(index);
    }
    bytes_ = 0;
    for (const UnstoredFile& file : left_) bytes_ += file.dirty_bytes;
  }

  bool is_over() {
    look();
    // A stream that has just written the last block of a file still settles its size and times.
    if (left_.empty() && is_settled()) return true;
    if (!left_.empty() && std::all_of(left_.begin(), left_.end(),
                                      [this](const UnstoredFile& f) { return is_hopeless(f); }))
      return true;
    const std::int64_t now = monotonic_ns();
    const double seconds = static_cast<double>(now - began_) / 1e9;
    if (options_.timeout_seconds && seconds > *options_.timeout_seconds)
      is_given_up_ = true;
    else if (now - reported_ >= std::int64_t{kProgressMs} * 1'000'000)
      is_given_up_ = !report(now);
    return is_given_up_;
  }

  bool is_settled() const {
    return std::none_of(wanted_.begin(), wanted_.end(), [this](std::uint32_t index) {
      const StoreFilePtr file = files_.find(static_cast<ObjectIndex>(index));
      return file != nullptr && file->queued.load();
    });
  }

  bool is_hopeless(const UnstoredFile& file) const {
    if (files_.find(file.object) == nullptr) return monotonic_ns() - began_ > kDescriptorWaitNanos;
    return file.failures >= kAttempts && file.last_failure_ns > began_;
  }

  bool report(std::int64_t now) {
    const std::uint64_t stored = reported_bytes_ > bytes_ ? reported_bytes_ - bytes_ : 0;
    DrainProgress progress;
    progress.remaining_bytes = bytes_;
    progress.remaining_files = left_.size();
    progress.rate_bytes_per_second = static_cast<std::uint64_t>(
        static_cast<double>(stored) * 1e9 / static_cast<double>(now - reported_));
    if (bytes_ != reported_bytes_) moved_ = now;
    progress.idle_seconds = static_cast<double>(now - moved_) / 1e9;
    progress.file = flusher_.current_path();
    reported_ = now;
    reported_bytes_ = bytes_;
    return !options_.progress || options_.progress(progress);
  }

  const NodeMemory& memory_;
  StoreFiles& files_;
  Flusher& flusher_;
  const DrainOptions& options_;
  std::unordered_set<std::uint32_t> wanted_;
  std::unordered_set<std::uint32_t> stored_;  // of them
  std::vector<UnstoredFile> left_;
  std::uint64_t bytes_ = 0;
  bool is_given_up_ = false;  // no time left, or nobody waits any more
  const std::uint64_t failures_ = files_.unsynced().failures();
  const std::int64_t began_ = monotonic_ns();
  std::int64_t reported_ = began_;
  std::int64_t moved_ = began_;  // at that report fewer bytes were left, or more, than before
  std::uint64_t reported_bytes_ = memory_.flusher_board().dirty_bytes.load();
};

}  // namespace

DrainOutcome drain(const NodeMemory& memory, StoreFiles& files, Flusher& flusher,
                   const DrainOptions& options) {
  return Drain(memory, files, flusher, options).run();
}

}  // namespace cairn::node
