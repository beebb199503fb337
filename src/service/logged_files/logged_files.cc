// SPDX-License-Identifier: Apache-2.0
#include "service/logged_files/logged_files.h"

#include <errno.h>
#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/crash_point.h"
#include "service/logged_files/file_identity.h"
#include "service/logged_files/logging_pass.h"
#include "service/logged_files/page_digest.h"

namespace cairn::node {
namespace {

using durable::Lsn;
using Outcome = LogAttempt::Outcome;

// A file that was made durable so short a time ago will be again: what is stored of it is logged
// first, so that its next fsync need not wait for the store. Not where that is much.
constexpr std::int64_t kFollowedNs = 2 * kNanosPerSecond;
constexpr std::uint64_t kFollowedBytesMax = 4 << 20;
// They may be written again faster than they are stored: no more is logged than is stored next.
constexpr std::uint64_t kKnownBytesMax = 64 << 20;

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
    seed = static_cast<std::uint64_t>(monotonic_ns());
  return seed;
}

durable::FileState store_state_of(const Object& object) {
  return {object.store_size.load(std::memory_order_acquire),
          object.store_mtime_ns.load(std::memory_order_acquire)};
}

}  // namespace

LoggedFiles::LoggedFiles(const NodeMemory& memory, Owner self, durable::DurableLog& log)
    : memory_(memory), self_(self), log_(log), seed_(random_seed()) {}

LoggedFiles::LoggedFilePtr LoggedFiles::find(ObjectIndex object) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(raw(object));
  return found == files_.end() ? nullptr : found->second;
}

LoggedFiles::LoggedFilePtr LoggedFiles::find_or_make(ObjectIndex object) {
  const std::lock_guard lock(mutex_);
  LoggedFilePtr& file = files_[raw(object)];
  if (file == nullptr) file = std::make_shared<LoggedFile>();
  return file;
}

void LoggedFiles::forget(ObjectIndex object, const LoggedFilePtr& file) {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(raw(object));
  if (found != files_.end() && found->second == file) files_.erase(found);
}

// The log gets to know the file; recovery is to find it by its name.
LoggedFiles::Introduced LoggedFiles::introduce(ObjectIndex object, LoggedFile& file, int fd) {
  if (file.number != durable::LogObject::kNone) return Introduced::kYes;
  if (fd < 0) return Introduced::kNeedsStore;
  Object& record = memory_.objects().at(object);
  const StoreName store = store_names_.name_of(record.store(), fd);
  const durable::FileState on_store = store_state_of(record);
  const durable::FileIdentity identity = identity_of(fd, record.key(), store);
  if (identity.path.empty()) return Introduced::kNeedsStore;
  const auto number = log_.add_object(identity, on_store);
  if (!number) return Introduced::kFull;
  file.number = *number;
  file.is_whole = on_store.size == 0;
  file.state = durable::FileState{};
  record.mark(kMarkKnownElsewhere, true);
  return Introduced::kYes;
}

// From here until its last record is retired, the file is being stored (invariant 1).
Status LoggedFiles::open_window(LoggedFile& file) const {
  if (file.is_storing) return Status::ok();
  const auto window = log_.begin_storing(file.number);
  if (!window) return window.status();
  file.is_storing = true;
  file.window = *window;
  return Status::ok();
}

LogAttempt LoggedFiles::log_changes(ObjectIndex index, int fd, Why why) {
  LogPortion all{.bytes_max = UINT64_MAX};
  return log_portion(index, fd, why, &all);
}

LogAttempt LoggedFiles::log_portion(ObjectIndex index, int fd, Why why, LogPortion* portion) {
  Object& object = memory_.objects().at(index);
  if (object.through.load() != 0 || object.has(kObjectUnlinked)) return {};
  if (object.is_store_owed()) return {};
  for (;;) {
    const LoggedFilePtr file = find_or_make(index);
    const std::lock_guard lock(file->mutex);
    if (file->is_gone) continue;
    if (const Introduced done = introduce(index, *file, fd); done != Introduced::kYes) {
      file->is_gone = true;
      forget(index, file);
      if (!log_.health()) return {Outcome::kFailed, Lsn::kNone};
      return {done == Introduced::kFull ? Outcome::kFull : Outcome::kNeedsStore, Lsn::kNone};
    }
    LoggingPass pass({memory_, self_, log_, seed_}, index, *file);
    Status status = open_window(*file);
    if (status) status = pass.run(portion);
    if (!status) return {outcome_of(status), Lsn::kNone};
    // What has turned clean before the pass came to it has marked the object by now.
    if (pass.was_disturbed() || object.is_store_owed() || object.through.load() != 0) return {};
    if (why == Why::kAsked) file->asked_ns = monotonic_ns();
    return {Outcome::kLogged, file->upto};
  }
}

bool LoggedFiles::prepare_store(ObjectIndex index, int fd) {
  const Object& object = memory_.objects().at(index);
  const bool is_first_logged =
      logs_first_.load() && log_changes(index, fd, Why::kUnasked).outcome == Outcome::kLogged;
  if (!object.is_in_log()) return is_first_logged;
  const LoggedFilePtr file = find(index);
  if (file == nullptr) return is_first_logged;
  bool is_followed = false;
  Lsn window = Lsn::kNone;
  {
    const std::lock_guard lock(file->mutex);
    is_followed = !file->is_gone && monotonic_ns() - file->asked_ns < kFollowedNs;
    window = file->window;
  }
  const std::uint64_t dirty = std::uint64_t{object.dirty_blocks.load()} * kBlockBytes;
  if (is_followed && !is_first_logged && dirty <= kFollowedBytesMax)
    (void)log_changes(index, fd, Why::kUnasked);
  if (!is_first_logged) log_known(index, *file);
  CAIRN_CRASH_POINT("logged.newer");
  if (window != Lsn::kNone) (void)log_.commit_within(window, kCommitMax);
  return is_first_logged;
}

// Calls log(LoggingPass&) for a file that may have older bytes in the log. It rests there all the
// same: a program that goes on writing what it once made durable would else be logged for ever.
template <typename Log>
void LoggedFiles::log_at_rest(ObjectIndex index, LoggedFile& file, Log&& log) {
  const Object& object = memory_.objects().at(index);
  if (object.through.load() != 0 || object.has(kObjectUnlinked)) return;
  const std::lock_guard lock(file.mutex);
  const bool has_records = !file.blocks.empty() || file.others_upto != Lsn::kNone;
  if (file.is_gone || file.number == durable::LogObject::kNone || !has_records) return;
  const std::int64_t logged_ns = file.logged_ns;
  LoggingPass pass({memory_, self_, log_, seed_}, index, file);
  // What the log does not take is stored without it.
  if (open_window(file)) log(pass);
  file.logged_ns = logged_ns;
}

// All together, in large records.
void LoggedFiles::log_known(ObjectIndex index, LoggedFile& file) {
  log_at_rest(index, file, [](LoggingPass& pass) {
    LogPortion known{.bytes_max = kKnownBytesMax, .only_known = true};
    (void)pass.run(&known);
  });
}

void LoggedFiles::log_newer(ObjectIndex index, const StoredPages& stored) {
  const LoggedFilePtr file = find(index);
  if (file == nullptr) return;
  log_at_rest(index, *file, [&](LoggingPass& pass) { (void)pass.log_stored(stored); });
}

LogAttempt LoggedFiles::log_cut(ObjectIndex index, std::uint64_t size) {
  const LoggedFilePtr file = find(index);
  if (file == nullptr) return {Outcome::kLogged, Lsn::kNone};
  const std::lock_guard lock(file->mutex);
  if (file->is_gone || file->number == durable::LogObject::kNone)
    return {Outcome::kLogged, Lsn::kNone};
  const durable::FileState state{size, wall_clock_ns()};
  if (const Status status = open_window(*file); !status) return {outcome_of(status), Lsn::kNone};
  const auto lsn = log_.append_size(file->number, state);
  if (!lsn) return {outcome_of(lsn.status()), Lsn::kNone};
  file->state = state;
  // The same bytes may be written again.
  file->blocks.clear();
  if (size == 0) memory_.objects().at(index).log_trouble.store(0);
  note_appended(memory_.objects().at(index), *file, *lsn);
  file->others_upto = size == 0 ? Lsn::kNone : *lsn;
  return {Outcome::kLogged, *lsn};
}

void LoggedFiles::log_renamed(ObjectIndex index, const std::string& path) {
  const LoggedFilePtr file = find(index);
  if (file == nullptr || path.empty()) return;
  const std::lock_guard lock(file->mutex);
  if (file->is_gone || file->number == durable::LogObject::kNone) return;
  // Without this root still finds the file by its identity.
  const auto lsn = log_.append_renamed(file->number, path);
  // None where all of its records are retired, and the word of that is on its way to the device.
  if (lsn && *lsn != Lsn::kNone) note_appended(memory_.objects().at(index), *file, *lsn);
  const std::lock_guard table(mutex_);
  last_rename_ = log_.appended();
}

LogAttempt LoggedFiles::log_removed(ObjectIndex index) {
  const LoggedFilePtr file = find(index);
  if (file == nullptr) return {Outcome::kLogged, Lsn::kNone};
  const std::lock_guard lock(file->mutex);
  if (file->is_gone || file->number == durable::LogObject::kNone)
    return {Outcome::kLogged, Lsn::kNone};
  const auto lsn = log_.append_removed(file->number);
  if (!lsn) return {outcome_of(lsn.status()), Lsn::kNone};
  end(index, *file);
  forget(index, file);
  return {Outcome::kLogged, *lsn};
}

// Requires: the file's lock.
void LoggedFiles::end(ObjectIndex object, LoggedFile& file) {
  log_.forget(file.number);
  file.is_gone = true;
  file.blocks.clear();
  Object& record = memory_.objects().at(object);
  record.log_trouble.store(0);
  record.log_position.store(0, std::memory_order_seq_cst);
}

LogMark LoggedFiles::begin_storing(ObjectIndex index) {
  Object& object = memory_.objects().at(index);
  LogMark mark;
  mark.failures = object.sync_failures.load();
  Lsn window = Lsn::kNone;
  if (const LoggedFilePtr file = find(index); file != nullptr) {
    const std::lock_guard lock(file->mutex);
    if (!file->is_gone && file->number != durable::LogObject::kNone) {
      mark.upto = file->upto;
      window = file->window;
    }
    file->is_whole = false;
  }
  // What fails here is said at the end.
  if (names_ != nullptr) (void)names_->store_names_of(object.key());
  if (window != Lsn::kNone) (void)log_.commit_within(window, kCommitMax);
  mark.owed = object.store_owed.load();
  return mark;
}

void LoggedFiles::doubt(StoreId store) {
  std::vector<std::pair<ObjectIndex, LoggedFilePtr>> of_store;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, file] : files_) {
      const auto index = static_cast<ObjectIndex>(number);
      if (memory_.objects().at(index).store() == store) of_store.emplace_back(index, file);
    }
  }
  for (const auto& [index, file] : of_store) {
    const std::lock_guard lock(file->mutex);
    if (file->is_gone) continue;
    Object& object = memory_.objects().at(index);
    object.log_trouble.fetch_or(kLogDoubted);
    object.note_sync_failure();
  }
}

LoggedPages LoggedFiles::dirty_pages(ObjectIndex index) {
  const LoggedFilePtr file = find(index);
  if (file == nullptr) return {};
  const std::lock_guard lock(file->mutex);
  return LoggingPass({memory_, self_, log_, seed_}, index, *file).dirty_pages();
}

void LoggedFiles::note_good_sync(ObjectIndex index, std::uint32_t failures_before) {
  const LoggedFilePtr file = find(index);
  if (file == nullptr) return;
  const std::lock_guard lock(file->mutex);
  Object& object = memory_.objects().at(index);
  if (file->is_gone || object.sync_failures.load() != failures_before) return;
  object.log_trouble.fetch_and(~std::uint32_t{kLogDoubted});
}

void LoggedFiles::note_failed_sync(ObjectIndex index, OwnSync outcome,
                                   const LoggedPages& dirty_before) {
  const LoggedFilePtr file = find(index);
  if (file == nullptr) return;
  const std::lock_guard lock(file->mutex);
  if (file->is_gone) return;
  std::atomic<std::uint32_t>& trouble = memory_.objects().at(index).log_trouble;
  LoggingPass pass({memory_, self_, log_, seed_}, index, *file);
  const bool is_lost = outcome == OwnSync::kFailed || !pass.is_all_dirty(dirty_before);
  if (is_lost) trouble.fetch_or(kLogLost);
  trouble.fetch_and(~std::uint32_t{kLogDoubted});
}

std::string LoggedFiles::path_of(ObjectIndex index) const {
  const LoggedFilePtr file = find(index);
  if (file == nullptr) return {};
  const std::lock_guard lock(file->mutex);
  return file->number == durable::LogObject::kNone ? std::string() : log_.path_of(file->number);
}

int LoggedFiles::end_storing(ObjectIndex index, const LogMark& mark) {
  const int error = retire_records(index, mark);
  if (error == 0) memory_.objects().at(index).note_store_paid(mark.owed);
  return error;
}

// Others may log the file while the word that it is stored is on its way to the device.
int LoggedFiles::retire_records(ObjectIndex index, const LogMark& mark) {
  if (names_ != nullptr) {
    const int error = names_->store_names_of(memory_.objects().at(index).key());
    if (error < 0) return error;
  }
  // Some of what was stored since may be lost.
  if (memory_.objects().at(index).sync_failures.load() != mark.failures) return -EIO;
  if (mark.upto == Lsn::kNone) return 0;
  const LoggedFilePtr file = find(index);
  if (file == nullptr) return 0;
  Status done = Status::ok();
  Lsn retired = Lsn::kNone;
  {
    const std::lock_guard lock(file->mutex);
    if (file->is_gone || file->number == durable::LogObject::kNone) return 0;
    if (memory_.objects().at(index).log_trouble.load() != 0) return -EIO;
    const bool goes_on = file->upto != mark.upto;
    file->is_storing = false;
    if (goes_on) done = open_window(*file);
    if (done) {
      const durable::FileState store = store_state_of(memory_.objects().at(index));
      done = log_.retire(file->number, mark.upto, store);
    }
    CAIRN_CRASH_POINT("logged.retired");
    if (done) file->forget_until(mark.upto);
    retired = log_.appended();
  }
  if (done) done = log_.commit_within(retired, kCommitMax);
  if (!done) return done.error_number() != 0 ? -done.error_number() : -EIO;
  CAIRN_CRASH_POINT("logged.retirement-durable");
  const std::lock_guard lock(file->mutex);
  if (file->is_gone || file->upto != mark.upto) return 0;
  end(index, *file);
  forget(index, file);
  return 0;
}

// The records of before count as one; the next pass logs all dirty pages again.
void LoggedFiles::inherit(ObjectIndex index) {
  Object& object = memory_.objects().at(index);
  if (!object.is_in_log()) return;
  const durable::LogObject number = log_.hold(object.key());
  if (number == durable::LogObject::kNone) {
    object.log_trouble.store(0);
    object.log_position.store(0, std::memory_order_seq_cst);
    return;
  }
  const LoggedFilePtr file = find_or_make(index);
  const std::lock_guard lock(file->mutex);
  file->number = number;
  file->upto = log_.appended();
  file->others_upto = file->upto;
  // Without room for its window, it waits for that in open_window().
  (void)open_window(*file);
}

bool LoggedFiles::is_logged(ObjectIndex object, BlockNumber number, BucketIndex bucket,
                            std::uint32_t sequence) {
  const LoggedFilePtr file = find(object);
  if (file == nullptr) return false;
  const std::lock_guard lock(file->mutex);
  const auto known = file->blocks.find(raw(number));
  return !file->is_gone && known != file->blocks.end() && known->second.stale == 0 &&
         known->second.bucket == bucket && known->second.sequence == sequence;
}

bool LoggedFiles::has_bytes(ObjectIndex object, const StoredPages& stored) {
  const LoggedFilePtr file = find(object);
  if (file == nullptr) return false;
  const std::lock_guard lock(file->mutex);
  const auto known = file->blocks.find(raw(stored.number));
  if (file->is_gone || known == file->blocks.end()) return false;
  const LoggedBlock& logged = known->second;
  if ((stored.pages & ~(logged.pages & ~logged.stale)) != 0) return false;
  for (unsigned page = 0; page < kPagesPerBlock; ++page) {
    if ((stored.pages >> page & 1) == 0) continue;
    const std::size_t begin = page * kPageBytes;
    if (begin >= stored.inside) continue;
    const std::size_t length = std::min<std::size_t>(kPageBytes, stored.inside - begin);
    if (page_digest(stored.bytes + begin, length, seed_) != logged.digests[page]) return false;
  }
  return true;
}

bool LoggedFiles::has_whole(ObjectIndex object) const {
  const LoggedFilePtr file = find(object);
  if (file == nullptr) return false;
  const std::lock_guard lock(file->mutex);
  return !file->is_gone && file->is_whole && file->upto != Lsn::kNone;
}

std::vector<LoggedFiles::InLog> LoggedFiles::all() const {
  std::vector<std::pair<ObjectIndex, LoggedFilePtr>> files;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [index, file] : files_)
      files.emplace_back(static_cast<ObjectIndex>(index), file);
  }
  std::vector<InLog> list;
  for (const auto& [index, file] : files) {
    const std::lock_guard lock(file->mutex);
    if (!file->is_gone && file->number != durable::LogObject::kNone)
      list.push_back({index, file->number, file->logged_ns});
  }
  return list;
}

}  // namespace cairn::node
