// SPDX-License-Identifier: Apache-2.0
#include "service/replay/recovery.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/crash_point.h"
#include "service/durable_log/directory_storage.h"
#include "service/durable_log/durable_log.h"
#include "service/durable_log/left_programs.h"
#include "service/replay/found_file.h"
#include "service/replay/left_words.h"
#include "service/replay/name_replay.h"
#include "service/replay/removed_files.h"
#include "service/replay/rescue_folder.h"
#include "service/replay/saved_copy.h"

namespace cairn::durable {
namespace {

// Files that are written before the first of them is flushed: the store works on all at once.
constexpr std::size_t kBatchFiles = 32;
constexpr const char* kBesideEnding = ".cairn-recovered";

struct Work {
  PendingFile* file = nullptr;
  FoundFile found;
  RecoveredFile result;
};

std::string last_name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

class Recovery {
 public:
  Recovery(const std::string& tier, const RecoveryOptions& options)
      : options_(options),
        tier_(tier),
        rescue_(options.rescue_folder.empty() ? log_folder_of(tier) + "/../" + kRescueFolder
                                              : options.rescue_folder) {}

  Status run(const std::string& tier);
  RecoveryReport take_report() { return std::move(report_); }

 private:
  Status open_log(const std::string& tier);
  Status batch(std::span<PendingFile* const> files);
  void plan_names(std::vector<PendingFile>& files);
  void keep(const PendingDirectory& directory, int error);
  Status finish_names();
  Status await_programs() const;
  Status heed_orphans();
  Status announce(std::vector<Work>& works);
  void restore(std::vector<Work>& works);
  int cut(const Work& work) const;
  int set_shape(const Work& work) const;
  Status let_go(Work& work);
  bool make_anew(Work& work);
  void put_elsewhere(Work& work);
  void rescue(Work& work);
  void take(Work& work, Outcome outcome, const SavedCopy& saved);
  Status settle(std::vector<Work>& works);
  void foretell(Work& work);
  void step(const char* name) const {
    if (options_.at_step) options_.at_step(name);
  }

  const RecoveryOptions& options_;
  const std::string tier_;
  RescueFolder rescue_;
  RecoveryReport report_;
  std::unique_ptr<LogStorage> storage_;
  OpenSuperblock superblock_;
  std::unique_ptr<DurableLog> log_;
  LogIndex index_;
  // It has the segments that the log still has; what is pending lies in them.
  std::unique_ptr<LogScan> scan_;
  std::unique_ptr<ExtentCopy> extents_;
  std::unique_ptr<RemovedFiles> removed_;
  std::uint64_t all_bytes_ = 0;
  bool is_of_this_start_ = false;  // the node that has left the log
  // Directories, each with what is to be done to it; null: it stays in the log.
  std::vector<PendingDirectory> directories_;
  std::vector<std::unique_ptr<NameReplay>> names_;
};

// They store without a node, past the log. A node that lives has the lock, and its programs are its
// own business. Nothing is written to the tier yet.
Status Recovery::await_programs() const {
  const auto storage = open_directory_storage(tier_, FolderWanted::kExisting);
  if (!storage) return storage.status();
  const auto locked = open_superblock(**storage, SuperblockLock::kTaken);
  return locked ? await_end_of_programs(log_folder_of(tier_)) : locked.status();
}

// The log is opened for writing first: that takes the lock, and begins a segment for what recovery
// has to say. Records up to there are what there is to restore, and the opening reads them anyway.
Status Recovery::open_log(const std::string& tier) {
  auto storage = open_directory_storage(tier, FolderWanted::kExisting);
  if (!storage) return storage.status();
  storage_ = std::move(*storage);
  auto superblock =
      open_superblock(*storage_, options_.dry_run ? SuperblockLock::kTaken : SuperblockLock::kNone);
  if (!superblock) return superblock.status();
  superblock_ = std::move(*superblock);
  const RecordVisitor visit = [this](const FoundRecord& record, const LogSegment& segment) {
    index_.add(record, segment);
  };
  if (!options_.dry_run) {
    FoundLog found{visit, {}};
    auto log = DurableLog::open(tier, {}, &found);
    if (!log) return log.status();
    log_ = std::move(*log);
    report_.scan = std::move(found.report);
  }
  auto scan = LogScan::open(*storage_, superblock_.content);
  if (!scan) return scan.status();
  scan_ = std::make_unique<LogScan>(std::move(*scan));
  if (!options_.dry_run) return Status::ok();
  auto scanned = scan_->run(Payloads::kVerified, visit);
  if (!scanned) return scanned.status();
  report_.scan = std::move(*scanned);
  return Status::ok();
}

Status Recovery::run(const std::string& tier) {
  if (!options_.dry_run && !options_.beside_programs) CAIRN_RETURN_IF_ERROR(await_programs());
  CAIRN_RETURN_IF_ERROR(open_log(tier));
  is_of_this_start_ = is_of_this_start(log_folder_of(tier));
  CAIRN_RETURN_IF_ERROR(heed_orphans());
  directories_ = index_.take_directories();
  std::vector<PendingFile> files = index_.take_pending();
  removed_ = std::make_unique<RemovedFiles>(files, [this](const char* name) { step(name); });
  for (const PendingFile& file : files) all_bytes_ += file.bytes();
  plan_names(files);
  extents_ = std::make_unique<ExtentCopy>(superblock_.content.log(), scan_->segments(),
                                          [this](std::uint64_t bytes) {
                                            report_.bytes += bytes;
                                            if (options_.progress) {
                                              options_.progress(report_.bytes, all_bytes_);
                                            }
                                          });
  // The names that somebody was told of are taken first. Superseded files have gone when it is
  // their turn, unless what is in their place could not be had.
  std::vector<PendingFile*> order;
  for (const int rank : {0, 1, 2}) {
    for (PendingFile& file : files) {
      const int rank_of_it = file.is_superseded() ? 2 : file.owner ? 0 : 1;
      if (rank_of_it == rank) order.push_back(&file);
    }
  }
  for (std::size_t at = 0; at < order.size(); at += kBatchFiles) {
    const std::size_t count = std::min(kBatchFiles, order.size() - at);
    CAIRN_RETURN_IF_ERROR(batch(std::span(order).subspan(at, count)));
  }
  CAIRN_RETURN_IF_ERROR(finish_names());
  step("close");
  if (log_ == nullptr) return Status::ok();
  CAIRN_RETURN_IF_ERROR(log_->close());
  step("forget orphans");
  // Words that stay mean no record that comes later.
  (void)forget_words(log_folder_of(tier_));
  const bool is_some_kept = std::ranges::find(report_.files, Outcome::kKept,
                                              &RecoveredFile::outcome) != report_.files.end();
  const auto end = is_some_kept ? keep_programs : forget_programs;
  end(log_folder_of(tier_));
  return Status::ok();
}

// Programs have stored these files themselves: what the log has of them is older.
Status Recovery::heed_orphans() {
  const auto words = left_words(log_folder_of(tier_));
  if (!words) return words.status();
  for (const OrphanWord& word : *words) {
    CAIRN_DCHECK(word.is_whole());
    if (word.log != superblock_.content.log()) continue;
    const auto voided = index_.void_stored(
        [&word](const ObjectKey& key) { return word.is_of(key); }, static_cast<Lsn>(word.upto));
    for (const LogIndex::Voided& file : voided) {
      step("say stored by programs");
      if (log_ == nullptr) continue;
      // What it has of it from later on may have been on its way, so the window stays open.
      if (const auto lsn = log_->begin_storing(file.object); !lsn) return lsn.status();
      CAIRN_RETURN_IF_ERROR(log_->retire(file.object, file.upto, file.store));
    }
  }
  return log_ == nullptr ? Status::ok() : log_->commit(log_->appended());
}

void Recovery::keep(const PendingDirectory& directory, int error) {
  RecoveredFile kept;
  kept.path = directory.identity.path;
  kept.outcome = Outcome::kKept;
  kept.error = error;
  report_.files.push_back(std::move(kept));
}

// Names first: they say where files are, and which are gone.
void Recovery::plan_names(std::vector<PendingFile>& files) {
  for (const PendingDirectory& directory : directories_) {
    auto names = std::make_unique<NameReplay>(directory, files, [this](const char* s) { step(s); });
    int error = names->plan();
    report_.names += names->count();
    if (error == 0) names->instruct();
    if (error == 0 && !options_.dry_run) error = names->move_and_remove();
    if (error != 0) {
      keep(directory, error);
      names.reset();
    }
    names_.push_back(std::move(names));
  }
}

// A directory whose file waits in the log waits for it.
Status Recovery::finish_names() {
  if (options_.dry_run) return Status::ok();
  for (std::size_t at = 0; at < names_.size(); ++at) {
    NameReplay* const names = names_[at].get();
    if (names == nullptr || names->waits()) continue;
    if (const int error = names->finish(); error != 0) {
      keep(directories_[at], error);
      continue;
    }
    step("say names stored");
    const Lsn last = directories_[at].records.back().lsn;
    CAIRN_RETURN_IF_ERROR(log_->retire(directories_[at].object, last, {}));
  }
  step("commit names stored");
  return log_->commit(log_->appended());
}

Status Recovery::batch(std::span<PendingFile* const> files) {
  std::vector<Work> works;
  for (PendingFile* const pending : files) {
    PendingFile& file = *pending;
    // The file was empty when the log got to know it, and nobody has made it durable in the store
    // since: whatever is there now, an older content that came back with the power, or a part of
    // this one, is void.
    if (file.store.size == 0 && has_restarted(file, boot_mark())) file.cut_to = 0;
    Work work{&file, find_file(file), {}};
    // Without a crash no name is lost: somebody without a node has removed it, or put another file
    // in its place.
    if (work.found.verdict == FileVerdict::kNew && is_of_this_start_)
      work.found.verdict = FileVerdict::kGone;
    work.found.is_taken = work.found.is_taken && !is_of_this_start_;
    const bool is_nowhere =
        work.found.verdict == FileVerdict::kNew || work.found.verdict == FileVerdict::kGone;
    work.result.path = file.identity.path;
    if (file.may_be_gone() && is_nowhere) {
      if (!options_.dry_run) CAIRN_RETURN_IF_ERROR(let_go(work));
      continue;
    }
    work.result.error = work.found.error;
    works.push_back(std::move(work));
  }
  Status status;
  if (options_.dry_run) {
    for (Work& work : works) foretell(work);
  } else {
    status = announce(works);
    CAIRN_CRASH_POINT("replay.announced");
    if (status.is_ok()) restore(works);
    CAIRN_CRASH_POINT("replay.written");
    if (status.is_ok()) status = settle(works);
    CAIRN_CRASH_POINT("replay.settled");
  }
  for (Work& work : works) {
    if (work.found.fd >= 0) ::close(work.found.fd);
    report_.files.push_back(std::move(work.result));
  }
  return status;
}

void Recovery::foretell(Work& work) {
  RecoveredFile& result = work.result;
  result.bytes = work.file->bytes();
  switch (work.found.verdict) {
    case FileVerdict::kFound:
      result.outcome = Outcome::kRestored;
      break;
    case FileVerdict::kNew:
      result.outcome = Outcome::kMadeAnew;
      break;
    case FileVerdict::kChanged:
      result.outcome = Outcome::kBeside;
      break;
    case FileVerdict::kTrouble:
      result.outcome = options_.rescues_trouble ? Outcome::kRescued : Outcome::kKept;
      break;
    default:
      result.outcome = Outcome::kRescued;
      break;
  }
}

Status Recovery::announce(std::vector<Work>& works) {
  Lsn last = Lsn::kNone;
  for (const Work& work : works) {
    if (work.found.verdict != FileVerdict::kFound) continue;
    step("announce");
    CAIRN_CHECK(work.file->object != LogObject::kNone);
    auto lsn = log_->begin_storing(work.file->object);
    if (!lsn) return lsn.status();
    last = std::max(last, *lsn);
  }
  step("commit announcements");
  return log_->commit(last);
}

int Recovery::cut(const Work& work) const {
  const PendingFile& file = *work.file;
  CAIRN_CHECK(work.found.fd >= 0 && file.is_pending());
  struct stat status{};
  if (::fstat(work.found.fd, &status) != 0) return errno;
  step("cut");
  const bool is_longer = static_cast<std::uint64_t>(status.st_size) > file.cut_to;
  return is_longer && ::ftruncate(work.found.fd, static_cast<off_t>(file.cut_to)) != 0 ? errno : 0;
}

int Recovery::set_shape(const Work& work) const {
  const PendingFile& file = *work.file;
  const int fd = work.found.fd;
  struct stat status{};
  step("size");
  if (::fstat(fd, &status) != 0) return errno;
  const bool is_cut = file.cut_to != ~std::uint64_t{0};
  const bool is_short = static_cast<std::uint64_t>(status.st_size) < file.state.size;
  if ((is_short || is_cut) && ::ftruncate(fd, static_cast<off_t>(file.state.size)) != 0) {
    return errno;
  }
  step("time");
  return set_mtime(fd, file.state.mtime_ns);
}

void Recovery::restore(std::vector<Work>& works) {
  std::vector<CopyTask> tasks;
  std::vector<Work*> owners;
  for (Work& work : works) {
    if (work.found.verdict != FileVerdict::kFound) continue;
    work.result.error = cut(work);
    if (work.result.error != 0) continue;
    tasks.push_back({work.file, work.found.fd, {}});
    owners.push_back(&work);
  }
  step("write");
  extents_->run(tasks);
  for (std::size_t at = 0; at < tasks.size(); ++at) {
    RecoveredFile& result = owners[at]->result;
    result.bytes = tasks[at].result.bytes;
    result.damaged = std::move(tasks[at].result.damaged);
    // A tier that does not answer is no damage: the file stays in the log.
    result.error = std::max(tasks[at].result.error, tasks[at].result.log_error);
    if (result.error == 0) result.error = set_shape(*owners[at]);
    result.outcome = Outcome::kRestored;
    result.written = owners[at]->found.path;
  }
  for (Work& work : works) {
    const bool was_found = work.found.verdict == FileVerdict::kFound;
    if (was_found && work.result.error == 0) continue;
    if (was_found) {
      work.result.written.clear();
      work.found.verdict = FileVerdict::kTrouble;
    }
    put_elsewhere(work);
  }
}

void Recovery::take(Work& work, Outcome outcome, const SavedCopy& saved) {
  work.result.outcome = outcome;
  work.result.written = saved.path;
  work.result.bytes = saved.copy.bytes;
  work.result.damaged = saved.copy.damaged;
}

// It is nowhere, as it should be.
Status Recovery::let_go(Work& work) {
  work.result.error = removed_->forget(*work.file);
  if (work.result.error == 0)
    return log_->retire(work.file->object, work.file->last, work.file->store);
  work.file->is_kept = true;
  work.result.outcome = Outcome::kKept;
  report_.files.push_back(std::move(work.result));
  return Status::ok();
}

// Under the name that it had last; where another file has that, by a name that somebody was told
// of, under the one before: nobody was told of the renaming.
bool Recovery::make_anew(Work& work) {
  const PendingFile& file = *work.file;
  const WhenTaken when = removed_->has_place_of(file) ? WhenTaken::kReplace : WhenTaken::kFail;
  for (const std::string& path : {file.identity.path, file.former_path}) {
    if (!path.starts_with('/')) continue;
    step("make anew");
    const SavedCopy saved =
        save_copy(*extents_, file, {folder_of(path), last_name_of(path), -1, when, file.owner});
    if (saved.error == 0) {
      work.result.is_private = !file.owner;
      take(work, Outcome::kMadeAnew, saved);
      return true;
    }
    work.result.error = saved.error;
    if (saved.error != EEXIST) return false;
  }
  return false;
}

void Recovery::put_elsewhere(Work& work) {
  const bool may_be_made = work.found.verdict == FileVerdict::kNew || work.found.is_taken;
  if (may_be_made && make_anew(work)) return;
  if (work.found.verdict == FileVerdict::kChanged) {
    step("write beside");
    const std::string ending = kBesideEnding;
    constexpr std::size_t kRoomForNumbers = 8;
    const std::string& path = work.found.path;
    const std::string beside =
        last_name_of(path).substr(0, NAME_MAX - ending.size() - kRoomForNumbers) + ending;
    const SavedCopy saved = save_copy(
        *extents_, *work.file, {folder_of(path), beside, work.found.fd, WhenTaken::kOtherName});
    if (saved.error == 0) {
      work.result.has_foreign_parts = work.file->bytes() < work.file->state.size;
      return take(work, Outcome::kBeside, saved);
    }
    work.result.error = saved.error;
  }
  if (work.found.verdict == FileVerdict::kTrouble && !options_.rescues_trouble) {
    work.result.outcome = Outcome::kKept;
    return;
  }
  rescue(work);
}

void Recovery::rescue(Work& work) {
  step("rescue");
  const SavedCopy saved = rescue_.save(*extents_, *work.file);
  if (saved.error == 0) {
    return take(work, Outcome::kRescued, saved);
  }
  if (work.result.error == 0) work.result.error = saved.error;
  work.result.outcome = Outcome::kKept;
}

// Files are flushed before the log says that they are stored.
Status Recovery::settle(std::vector<Work>& works) {
  for (Work& work : works) {
    if (work.result.outcome != Outcome::kRestored || work.found.verdict != FileVerdict::kFound) {
      continue;
    }
    step("flush file");
    work.result.error = ::fsync(work.found.fd) == 0 ? 0 : errno;
    if (work.result.error == 0)
      work.result.error = removed_->take_place(*work.file, work.found.path);
    if (work.result.error != 0) work.result.outcome = Outcome::kKept;
  }
  for (Work& work : works) {
    const bool is_kept = work.result.outcome == Outcome::kKept;
    work.file->is_kept = is_kept;
    if (is_kept) work.result.written = work.found.path;
    if (is_kept && work.found.fd < 0) continue;
    struct stat status{};
    FileState now = work.file->store;
    if (work.found.fd >= 0 && ::fstat(work.found.fd, &status) == 0) {
      now = {static_cast<std::uint64_t>(status.st_size),
             status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec};
    }
    // A file that stays may be half written: the window stays open for the next recovery.
    if (is_kept) continue;
    step("say stored");
    CAIRN_RETURN_IF_ERROR(log_->retire(work.file->object, work.file->last, now));
  }
  step("commit stored");
  return log_->commit(log_->appended());
}

}  // namespace

bool RecoveryReport::is_complete() const {
  if (!scan.damage.empty()) return false;
  return std::all_of(files.begin(), files.end(), [](const RecoveredFile& file) {
    return file.damaged.empty() && file.outcome != Outcome::kRescued &&
           file.outcome != Outcome::kKept;
  });
}

Result<RecoveryReport> recover(const std::string& tier_directory, const RecoveryOptions& options) {
  Recovery recovery(tier_directory, options);
  CAIRN_RETURN_IF_ERROR(recovery.run(tier_directory));
  return recovery.take_report();
}

}  // namespace cairn::durable
