// SPDX-License-Identifier: Apache-2.0
#include "service/replay/name_replay.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "base/check.h"
#include "service/durable_log/directory_search.h"
#include "service/durable_log/file_handle.h"
#include "service/replay/saved_copy.h"

namespace cairn::durable {

namespace {

constexpr const char* kRenamingEnding = ".cairn-renaming";

}  // namespace

NameReplay::NameReplay(const PendingDirectory& directory, std::span<PendingFile> files, Step step)
    : directory_(directory), files_(files), step_(std::move(step)) {
  for (const PendingDirectory::Record& record : directory_.records) {
    for (const NameChange& change : record.changes) {
      meanings_[change.name] = change;
      if (change.before) mentioned_.insert(*change.before);
      if (change.after) mentioned_.insert(*change.after);
      if (change.after && change.may_be_empty) may_be_empty_.insert(*change.after);
    }
  }
}

NameReplay::~NameReplay() {
  if (fd_ >= 0) ::close(fd_);
}

NamedFile NameReplay::named(const PendingFile& file) {
  return {file.identity.key.id, file.identity.handle};
}

bool NameReplay::wants(const PendingFile& file) const {
  return std::ranges::any_of(meanings_,
                             [&](const auto& entry) { return entry.second.after == named(file); });
}

// Whether the last name of the file that anybody has heard of is one of these. The record of a
// directory that it has left may be older than its removal from another one.
bool NameReplay::had_last_name(const PendingFile& file) const {
  return std::ranges::any_of(meanings_, [&](const auto& entry) {
    return entry.second.after == named(file) && file.identity.path == path_ + "/" + entry.first;
  });
}

bool NameReplay::waits() const {
  return std::ranges::any_of(
      files_, [this](const PendingFile& file) { return file.is_kept && wants(file); });
}

std::optional<NamedFile> NameReplay::look(const std::string& name, int* error) const {
  FileLook found;
  const int failed = look_at(fd_, name, &found);
  if (failed == 0) return found.file;
  if (failed != ENOENT) *error = failed;
  return std::nullopt;
}

std::string NameReplay::passing_name(const NamedFile& file) const {
  return "." + std::to_string(file.id.inode) + "-" + std::to_string(file.id.birth_ns) +
         kRenamingEnding;
}

// Under a name that the log has never heard of, or in another directory.
bool NameReplay::is_elsewhere(const NamedFile& file) const {
  // Where the log has last heard of it, everybody may look; by its handle, only root.
  const bool is_found = std::ranges::any_of(files_, [&file](const PendingFile& pending) {
    FileLook found;
    return named(pending) == file && look_at(AT_FDCWD, pending.identity.path, &found) == 0 &&
           found.file.id == file.id;
  });
  if (is_found) return true;
  if (file.handle.empty()) return false;
  const int fd = open_by_handle(fd_, file.handle, O_PATH | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat status{};
  const bool is_named = ::fstat(fd, &status) == 0 && status.st_nlink != 0;
  ::close(fd);
  return is_named;
}

// What programs have moved since then is where they want it: a displaced file that lost the name
// that it has would be lost itself.
void NameReplay::find_displaced() {
  // One that stays may displace another one.
  for (std::size_t known = SIZE_MAX; known != displaced_.size();) {
    known = displaced_.size();
    for (const auto& [name, wanted] : meanings_) {
      const auto now = there_.find(name);
      if (wanted.after && now != there_.end() && now->second != *wanted.after &&
          !may_go(now->second))
        displaced_.insert(*wanted.after);
    }
  }
}

// Where only root may ask (CAP_DAC_READ_SEARCH), nothing is certain for others.
bool NameReplay::is_certainly_gone(const NamedFile& file) const {
  if (file.handle.empty()) return false;
  const int fd = open_by_handle(fd_, file.handle, O_PATH | O_CLOEXEC);
  if (fd < 0) return fd == -ESTALE;
  struct stat status{};
  const bool is_nameless = ::fstat(fd, &status) == 0 && status.st_nlink == 0;
  ::close(fd);
  return is_nameless;
}

// Whether the file has no claim to the name that it has.
bool NameReplay::may_go(const NamedFile& file) const {
  return mentioned_.contains(file) && !displaced_.contains(file);
}

bool NameReplay::has_restarted() const {
  const std::uint64_t boot = boot_mark();
  return boot == 0 ||
         std::ranges::any_of(directory_.records, [boot](const PendingDirectory::Record& record) {
           return record.boot != boot;
         });
}

// What it takes that the name means the file.
void NameReplay::place(const std::string& name, const NameChange& wanted) {
  CAIRN_CHECK(wanted.after.has_value());
  const auto now = there_.find(name);
  if (now != there_.end() && now->second == *wanted.after) return;
  const bool is_taken = now != there_.end();
  if (is_taken && !may_go(now->second)) {
    replaced_.insert(*wanted.after);
    return;
  }
  const auto source = std::ranges::find_if(
      there_, [&](const auto& entry) { return entry.second == *wanted.after; });
  if (source != there_.end()) {
    moves_.push_back({source->first, name, *wanted.after});
    return;
  }
  const auto file = std::ranges::find_if(files_, [&](const PendingFile& pending) {
    return named(pending) == *wanted.after && pending.is_complete();
  });
  const bool is_in_log = file != files_.end();
  if (!is_in_log && !may_be_empty_.contains(*wanted.after)) return;
  if (is_elsewhere(*wanted.after)) return;
  making_.push_back({name, wanted, is_in_log ? &*file : nullptr, is_taken});
}

int NameReplay::plan() {
  fd_ = open_directory(directory_.identity);
  if (fd_ < 0) return fd_ == -ENOENT || fd_ == -ESTALE ? 0 : -fd_;
  char path[PATH_MAX];
  const ssize_t length =
      ::readlink(("/proc/self/fd/" + std::to_string(fd_)).c_str(), path, sizeof path);
  path_ =
      length <= 0 ? directory_.identity.path : std::string(path, static_cast<std::size_t>(length));
  int error = 0;
  for (const auto& [name, wanted] : meanings_) {
    if (const auto file = look(name, &error)) there_[name] = *file;
    // A recovery that was killed has left it so.
    const std::string passing = wanted.after ? passing_name(*wanted.after) : std::string();
    const auto moved = passing.empty() ? std::nullopt : look(passing, &error);
    if (moved && moved == wanted.after) there_[passing] = *moved;
  }
  if (error != 0) return error;
  if (!has_restarted()) return 0;
  find_displaced();
  for (const auto& [name, wanted] : meanings_) {
    if (wanted.after) place(name, wanted);
  }
  for (const auto& entry : there_) {
    const std::string& name = entry.first;
    const auto meaning = meanings_.find(name);
    if (meaning == meanings_.end() || meaning->second.after) continue;
    const bool moves =
        std::ranges::any_of(moves_, [&name](const Move& move) { return move.from == name; });
    if (may_go(entry.second) && !moves) removals_.push_back(name);
  }
  return 0;
}

void NameReplay::instruct() {
  for (PendingFile& file : files_) {
    const NamedFile name = named(file);
    if (fd_ < 0 || !mentioned_.contains(name)) continue;
    const bool is_wanted = wants(file) && !replaced_.contains(name);
    file.is_named = file.is_named || (has_restarted() && is_wanted && had_last_name(file));
    file.is_unnamed = file.is_unnamed || (has_restarted() ? !is_wanted : is_certainly_gone(name));
  }
  for (const Making& making : making_) {
    if (making.file == nullptr || making.file->may_be_gone()) continue;
    making.file->identity.path = path_ + "/" + making.name;
    making.file->owner = {making.wanted.mode, making.wanted.user, making.wanted.group};
  }
}

// A name that a file still has to leave is waited for; in a circle, a passing name helps.
int NameReplay::move_all() {
  std::vector<Move> left = moves_;
  while (!left.empty()) {
    const auto is_free = [&left](const Move& move) {
      return std::ranges::none_of(left, [&](const Move& other) { return other.from == move.to; });
    };
    const auto next = std::ranges::find_if(left, is_free);
    Move& move = next == left.end() ? left.front() : *next;
    const std::string to = next == left.end() ? passing_name(move.file) : move.to;
    step_("rename");
    if (::renameat(fd_, move.from.c_str(), fd_, to.c_str()) != 0) return errno;
    if (next == left.end()) {
      move.from = to;
    } else {
      left.erase(next);
    }
  }
  return 0;
}

int NameReplay::make_empty(const Making& making) {
  step_("make empty");
  constexpr int kMake = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  const int fd = ::openat(fd_, making.name.c_str(), kMake, 0600);
  if (fd < 0) return errno;
  give_to(fd, {making.wanted.mode, making.wanted.user, making.wanted.group});
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  return error;
}

int NameReplay::move_and_remove() {
  if (fd_ < 0) return 0;
  if (const int error = move_all(); error != 0) return error;
  for (const Making& making : making_) {
    if (making.is_taken) removals_.push_back(making.name);
  }
  for (const std::string& name : removals_) {
    // A file that was moved away has left it already.
    int error = 0;
    const auto now = look(name, &error);
    const bool goes = now && mentioned_.contains(*now) && meanings_.at(name).after != now;
    step_("remove");
    if (goes && ::unlinkat(fd_, name.c_str(), 0) != 0) error = errno;
    if (error != 0) return error;
  }
  for (const Making& making : making_) {
    if (making.file != nullptr) continue;
    if (const int error = make_empty(making); error != 0) return error;
  }
  return 0;
}

int NameReplay::finish() {
  if (fd_ < 0) return 0;
  step_("flush directory");
  return ::fsync(fd_) == 0 ? 0 : errno;
}

}  // namespace cairn::durable
