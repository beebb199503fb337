// SPDX-License-Identifier: Apache-2.0
#include "service/durability/dirty_logging.h"

#include <errno.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"

namespace cairn::node {
namespace {

bool is_to_be_logged(const Object& object, bool takes_owed) {
  const bool is_lasting =
      object.handling().mode != BufferingMode::kScratch && !object.has(kObjectUnlinked);
  return is_lasting && (object.dirty_blocks.load() != 0 || object.has(kObjectTimesDirty) ||
                        (takes_owed && object.is_store_owed()));
}

// One for many files; but a file whose store does not answer keeps those before it waiting for no
// more than the pause.
class Commits {
 public:
  Commits(durable::DurableLog& log, std::chrono::milliseconds limit, DirtyLogging* result)
      : log_(log), limit_(limit), result_(result) {}

  // The log's device has not answered in time. Even an append might wait for it without end.
  bool is_in_vain() const { return is_in_vain_; }

  void add(durable::Lsn upto, bool is_whole) {
    last_ = std::max(last_, upto);
    if (is_whole) ++files_;
    if (monotonic_ns() - committed_ns_ > kPauseNs) finish();
  }
  void finish() {
    if (last_ == durable::Lsn::kNone) return;
    const Status done = log_.commit_within(last_, limit_);
    (done ? result_->logged : result_->skipped) += files_;
    is_in_vain_ = done.error_number() == ETIMEDOUT;
    files_ = 0;
    last_ = durable::Lsn::kNone;
    committed_ns_ = monotonic_ns();
  }

 private:
  static constexpr std::int64_t kPauseNs = 50'000'000;

  durable::DurableLog& log_;
  const std::chrono::milliseconds limit_;
  DirtyLogging* const result_;
  durable::Lsn last_ = durable::Lsn::kNone;
  std::uint64_t files_ = 0;
  bool is_in_vain_ = false;
  std::int64_t committed_ns_ = 0;  // the first file is committed at once
};

// One round over all files.
class Round {
 public:
  Round(LoggedFiles& logged, const LoggingPace& pace)
      : logged_(logged), pace_(pace), commits_(logged.log(), pace.commit_max, &result_) {}

  // False when the round is to end.
  bool log(const StoreFile& file) {
    LogPortion portion{.bytes_max = pace_.bytes_at_once};
    while (!portion.is_last) {
      if (commits_.is_in_vain()) {
        count_failure(file.object, LogAttempt::Outcome::kFailed);
        return true;
      }
      const std::int64_t began_ns = monotonic_ns();
      const LogAttempt attempt =
          logged_.log_portion(file.object, file.fd.get(), LoggedFiles::Why::kUnasked, &portion);
      if (attempt.outcome != LogAttempt::Outcome::kLogged) {
        count_failure(file.object, attempt.outcome);
        return true;
      }
      commits_.add(attempt.upto, portion.is_last);
      if (pace_.rest && !pace_.rest(monotonic_ns() - began_ns)) return false;
    }
    return true;
  }
  DirtyLogging finish() {
    commits_.finish();
    return std::move(result_);
  }

 private:
  void count_failure(ObjectIndex object, LogAttempt::Outcome outcome) {
    if (outcome == LogAttempt::Outcome::kNeedsStore) {
      result_.refused.push_back(object);
    } else {
      ++result_.skipped;
    }
  }

  LoggedFiles& logged_;
  const LoggingPace& pace_;
  DirtyLogging result_;
  Commits commits_;
};

}  // namespace

DirtyLogging log_dirty(const NodeMemory& memory, LoggedFiles& logged, const StoreFiles& files,
                       const LoggingPace& pace) {
  Round round(logged, pace);
  for (const StoreFilePtr& file : files.snapshot()) {
    const Object& object = memory.objects().at(file->object);
    if (is_to_be_logged(object, pace.takes_owed) && !round.log(*file)) break;
  }
  return round.finish();
}

}  // namespace cairn::node
