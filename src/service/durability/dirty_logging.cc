// SPDX-License-Identifier: Apache-2.0
#include "service/durability/dirty_logging.h"

#include <algorithm>

#include "base/clock.h"

namespace cairn::node {
namespace {

bool is_to_be_logged(const Object& object) {
  const bool is_lasting =
      object.handling().mode != BufferingMode::kScratch && !object.has(kObjectUnlinked);
  return is_lasting && (object.dirty_blocks.load() != 0 || object.has(kObjectTimesDirty));
}

// One for many files; but a file whose store does not answer keeps those before it waiting for no
// more than the pause.
class Commits {
 public:
  Commits(durable::DurableLog& log, DirtyLogging* result) : log_(log), result_(result) {}

  void add(durable::Lsn upto) {
    last_ = std::max(last_, upto);
    ++files_;
    if (monotonic_ns() - committed_ns_ > kPauseNs) finish();
  }
  void finish() {
    if (files_ == 0) return;
    (log_.commit(last_) ? result_->logged : result_->skipped) += files_;
    files_ = 0;
    committed_ns_ = monotonic_ns();
  }

 private:
  static constexpr std::int64_t kPauseNs = 50'000'000;

  durable::DurableLog& log_;
  DirtyLogging* const result_;
  durable::Lsn last_ = durable::Lsn::kNone;
  std::uint64_t files_ = 0;
  std::int64_t committed_ns_ = 0;  // the first file is committed at once
};

}  // namespace

DirtyLogging log_dirty(const NodeMemory& memory, LoggedFiles& logged, const StoreFiles& files) {
  DirtyLogging result;
  Commits commits(logged.log(), &result);
  for (const StoreFilePtr& file : files.snapshot()) {
    if (!is_to_be_logged(memory.objects().at(file->object))) continue;
    const LogAttempt attempt =
        logged.log_changes(file->object, file->fd.get(), LoggedFiles::Why::kUnasked);
    switch (attempt.outcome) {
      case LogAttempt::Outcome::kLogged:
        commits.add(attempt.upto);
        break;
      case LogAttempt::Outcome::kNeedsStore:
        ++result.refused;
        break;
      case LogAttempt::Outcome::kFull:
      case LogAttempt::Outcome::kFailed:
        ++result.skipped;
        break;
    }
  }
  commits.finish();
  return result;
}

}  // namespace cairn::node
