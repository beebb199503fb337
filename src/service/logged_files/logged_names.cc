// SPDX-License-Identifier: Apache-2.0
#include "service/logged_files/logged_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/descriptor_path.h"
#include "memory/backing/posix_backing.h"
#include "memory/backing/store_name.h"
#include "service/logged_files/file_identity.h"

namespace cairn::node {
namespace {

using durable::FileLook;
using durable::Lsn;
using durable::NameChange;
using Outcome = LogAttempt::Outcome;

constexpr std::size_t kDirectoriesMax = 64;
// A directory with more entries is not read when its watch begins; of one with more files that
// are known, nothing is known any more.
constexpr std::size_t kEntriesRead = 256;
constexpr std::size_t kNamesKnown = 1024;
// A directory that nobody has made durable for so long is watched no more.
constexpr std::int64_t kWatchNs = 60 * kNanosPerSecond;

// A file whose only name this is, and that no other file can be taken for.
bool is_plain(const FileLook& look) {
  return look.is_regular() && look.status.stx_nlink == 1 && look.file.id.birth_ns != 0;
}

std::optional<ObjectKey> key_of(int fd) {
  StoreStatus status;
  if (store_status(fd, &status) < 0 || !S_ISDIR(status.mode)) return std::nullopt;
  return status.key;
}

}  // namespace

LoggedNames::LoggedNames(const NodeMemory& memory, LoggedFiles& files, durable::DurableLog& log)
    : memory_(memory), files_(files), log_(log), left_(memory, log) {}

LoggedNames::DirectoryPtr LoggedNames::find(const ObjectKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = directories_.find(key);
  return found == directories_.end() ? nullptr : found->second;
}

// Directories of other file systems are left out before any lock is taken: a thread that waits for
// such a file system may hold theirs.
std::vector<LoggedNames::DirectoryPtr> LoggedNames::in_log(std::optional<StoreId> only) const {
  std::vector<DirectoryPtr> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, directory] : directories_) {
      if (!only || key.store == *only) all.push_back(directory);
    }
  }
  std::erase_if(all, [](const DirectoryPtr& directory) {
    const std::lock_guard lock(directory->mutex);
    return directory->upto == Lsn::kNone;
  });
  return all;
}

bool LoggedNames::is_idle() const {
  const std::lock_guard lock(mutex_);
  return directories_.empty() && left_.is_empty();
}

// ---- questions

LogAttempt LoggedNames::log(int fd) {
  const auto key = key_of(fd);
  const DirectoryPtr directory = key ? find(*key) : nullptr;
  if (directory == nullptr) return {};
  const std::lock_guard lock(directory->mutex);
  directory->asked_ns = monotonic_ns();
  return log_changes(directory);
}

// The directory may have a file that the log has under the name that it had in another one.
int LoggedNames::store(int fd) {
  if (const Lsn renamed = files_.last_rename(); renamed > log_.durable())
    (void)log_.commit_within(renamed, kCommitMax);
  const auto key = key_of(fd);
  if (!key) return -ENOTDIR;
  DirectoryPtr directory = find(*key);
  if (directory == nullptr) directory = watch(fd, *key);
  if (directory != nullptr) return store(directory);
  if (::fsync(fd) != 0) return -errno;
  return left_.note_stored(*key);
}

int LoggedNames::store(const DirectoryPtr& directory) {
  std::uint64_t debt = 0;
  Lsn upto = Lsn::kNone;
  {
    const std::lock_guard lock(directory->mutex);
    // Whatever it is: the store gets it.
    if (const auto changes = changes_of(directory)) learn(directory, *changes);
    if (!directory->known.has_all && directory->watch >= 0) scan(directory);
    debt = ++directory->debts;
    upto = directory->upto;
  }
  if (::fsync(directory->fd.get()) != 0) return -errno;
  if (const int error = left_.note_stored(directory->key); error < 0) return error;
  Status done;
  {
    const std::lock_guard lock(directory->mutex);
    directory->paid = std::max(directory->paid, debt);
    if (upto == Lsn::kNone) return 0;
    if (directory->number != durable::LogObject::kNone)
      done = log_.retire(directory->number, upto, {});
    if (done && directory->upto == upto) {
      CAIRN_CHECK(directory->number != durable::LogObject::kNone);
      log_.forget(directory->number);
      directory->number = durable::LogObject::kNone;
      directory->upto = Lsn::kNone;
      forget_named(directory);
      memory_.service_board().named_directories.fetch_sub(1);
    }
  }
  if (done) done = log_.commit_within(log_.appended(), kCommitMax);
  return done ? 0 : done.error_number() != 0 ? -done.error_number() : -EIO;
}

void LoggedNames::forget_named(const DirectoryPtr& directory) {
  const std::lock_guard table(mutex_);
  std::erase_if(named_, [&](const auto& entry) { return entry.second == directory; });
}

int LoggedNames::store_names_of(const ObjectKey& file) {
  if (const int error = left_.store(file.store); error < 0) return error;
  std::vector<DirectoryPtr> owing;
  {
    const std::lock_guard lock(mutex_);
    const auto [begin, end] = named_.equal_range({file.store, file.id});
    for (auto entry = begin; entry != end; ++entry) owing.push_back(entry->second);
  }
  for (const DirectoryPtr& directory : owing) {
    if (const int error = store(directory); error < 0) return error;
  }
  return 0;
}

int LoggedNames::retire_pressing(const std::vector<durable::PressingObject>& pressing) {
  if (pressing.empty()) return 0;
  std::set<durable::LogObject> numbers;
  for (const durable::PressingObject& object : pressing) numbers.insert(object.object);
  int result = 0;
  for (const DirectoryPtr& directory : in_log()) {
    const bool presses = [&] {
      const std::lock_guard lock(directory->mutex);
      return numbers.contains(directory->number);
    }();
    const int error = presses ? store(directory) : 0;
    if (result == 0) result = error;
  }
  return result;
}

int LoggedNames::retire_rested(std::int64_t rest_ns) {
  int result = 0;
  for (const DirectoryPtr& directory : in_log()) {
    const bool rests = monotonic_ns() - directory->logged_ns.load() >= rest_ns;
    const int error = rests ? store(directory) : 0;
    if (result == 0) result = error;
  }
  unwatch_rested();
  return result;
}

int LoggedNames::retire_all(std::uint64_t device) {
  const auto only = device == 0 ? std::nullopt : std::optional(StoreId{device});
  int result = left_.store(only);
  for (const DirectoryPtr& directory : in_log(only)) {
    const int error = store(directory);
    if (result == 0) result = error;
  }
  return result;
}

// ---- what is watched

LoggedNames::DirectoryPtr LoggedNames::watch(int fd, const ObjectKey& key) {
  UniqueFd own(::open(DescriptorPath(fd).text, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own) return nullptr;
  const std::lock_guard lock(mutex_);
  if (const auto known = directories_.find(key); known != directories_.end()) return known->second;
  if (directories_.size() >= kDirectoriesMax) return nullptr;
  const int number = watch_.add(own.get());
  if (number < 0) return nullptr;
  auto made = std::make_shared<Directory>();
  made->key = key;
  made->fd = std::move(own);
  made->watch = number;
  made->store = store_name_of(made->fd.get());
  made->debts = 1;
  made->asked_ns = monotonic_ns();
  directories_.emplace(key, made);
  return made;
}

void LoggedNames::unwatch_rested() {
  const std::lock_guard table(mutex_);
  for (auto entry = directories_.begin(); entry != directories_.end();) {
    const DirectoryPtr directory = entry->second;
    const std::unique_lock lock(directory->mutex, std::try_to_lock);
    const bool rests = lock.owns_lock() && directory->upto == Lsn::kNone &&
                       monotonic_ns() - directory->asked_ns.load() >= kWatchNs;
    if (!rests) {
      ++entry;
      continue;
    }
    watch_.remove(std::exchange(directory->watch, -1));
    std::erase_if(homes_, [&](const auto& home) { return home.second.directory == directory; });
    entry = directories_.erase(entry);
  }
}

// ---- what has changed

// None: the log has no words for it, and the directory owes the store an fsync.
std::optional<LoggedNames::Changes> LoggedNames::changes_of(const DirectoryPtr& directory) {
  NameStory story(directory->known);
  bool is_all_unknown = false;
  for (const NameEvent& event : watch_.take(directory->watch)) {
    is_all_unknown |= event.name.empty();
    (void)story.hear(event);
  }
  const bool owes = directory->debts != directory->paid;
  std::map<std::string, FileLook> looks;
  auto changes =
      owes ? std::nullopt
           : story.end(
                 [&](const std::string& name) -> std::optional<std::optional<durable::NamedFile>> {
                   FileLook& look = looks[name];
                   const int error = look_at(directory->fd.get(), name, &look);
                   if (error == ENOENT) return std::optional<durable::NamedFile>();
                   if (error != 0 || !is_plain(look)) return std::nullopt;
                   return look.file;
                 });
  const bool is_told = changes && std::ranges::all_of(*changes, [&](NameChange& change) {
                         return describe(*directory, looks[change.name], &change);
                       });
  if (is_told) return changes;
  ++directory->debts;
  if (directory->watch < 0) return std::nullopt;
  if (is_all_unknown) forget_names(directory);
  look_again(directory, story.touched());
  return std::nullopt;
}

// What recovery needs to make the file again, should its store have lost its name with the power.
bool LoggedNames::describe(const Directory& directory, const FileLook& look,
                           NameChange* change) const {
  if (!change->after) return true;
  change->mode = look.status.stx_mode & 07777;
  change->user = look.status.stx_uid;
  change->group = look.status.stx_gid;
  // One that was there before is on the store under another name, or the log has all of it.
  const ObjectKey key{ObjectKind::kFile, directory.key.store, change->after->id};
  if (is_known(directory, *change->after)) return true;
  const ObjectIndex index = memory_.objects().find(key);
  if (index == ObjectIndex::kNone) return false;
  const Object& object = memory_.objects().at(index);
  const ObjectHandling handling = object.handling();
  const bool is_of_node =
      object.durability.load() == Durability::kNode && handling.mode == BufferingMode::kAsync;
  if (!is_of_node || object.through.load() != 0) return false;
  change->may_be_empty = !object.is_in_log() && object.store_size.load() == 0 &&
                         look.status.stx_size == 0 && !object.is_store_owed();
  return change->may_be_empty || files_.has_whole(index);
}

bool LoggedNames::is_known(const Directory& directory, const durable::NamedFile& file) const {
  const std::lock_guard table(mutex_);
  const auto home = homes_.find({directory.key.store, file.id});
  return home != homes_.end() && home->second.directory.get() == &directory &&
         home->second.file == file;
}

LogAttempt LoggedNames::log_changes(const DirectoryPtr& directory) {
  const auto changes = changes_of(directory);
  if (!changes) return {};
  if (changes->empty()) return {Outcome::kLogged, directory->upto};
  return append(directory, *changes);
}

LogAttempt LoggedNames::append(const DirectoryPtr& directory, const Changes& changes) {
  CAIRN_CHECK(!changes.empty());
  learn(directory, changes);
  auto lsn = introduce(*directory) ? log_.append_names(directory->number, changes)
                                   : Status(StatusCode::kInvalid, "the directory has moved", 0);
  if (!lsn) {
    ++directory->debts;
    return {outcome_of(lsn.status()), Lsn::kNone};
  }
  CAIRN_CHECK(*lsn > directory->upto);
  const std::lock_guard table(mutex_);
  if (directory->upto == Lsn::kNone) memory_.service_board().named_directories.fetch_add(1);
  directory->upto = *lsn;
  directory->logged_ns = monotonic_ns();
  for (const NameChange& change : changes) {
    if (!change.after) continue;
    const FilePlace place{directory->key.store, change.after->id};
    const auto [begin, end] = named_.equal_range(place);
    const bool is_there =
        std::any_of(begin, end, [&](const auto& entry) { return entry.second == directory; });
    if (!is_there) named_.emplace(place, directory);
  }
  return {Outcome::kLogged, *lsn};
}

// False when the log knows the directory by another path.
bool LoggedNames::introduce(Directory& directory) {
  durable::FileIdentity identity = identity_of(directory.fd.get(), directory.key, directory.store);
  if (identity.path.empty() || identity.handle.size() > durable::kHandleBytesMax) return false;
  if (directory.number != durable::LogObject::kNone) return identity.path == directory.path;
  directory.path = identity.path;
  const auto number = log_.add_object(identity, {});
  if (number) directory.number = *number;
  return number.is_ok();
}

// ---- what is known

void LoggedNames::scan(const DirectoryPtr& directory) {
  const UniqueFd fd(::openat(directory->fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* stream = fd ? ::fdopendir(::dup(fd.get())) : nullptr;
  if (stream == nullptr) return;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    if (names.size() > kEntriesRead) break;
  }
  ::closedir(stream);
  if (names.size() > kEntriesRead) return;
  forget_names(directory);
  look_again(directory, names);
  CAIRN_CHECK(directory->known.names.size() <= names.size());
  directory->known.has_all = true;
}

// What the names mean now. If one changes during the look, its next events do not fit.
void LoggedNames::look_again(const DirectoryPtr& directory, const std::vector<std::string>& names) {
  Changes changes;
  for (const std::string& name : names) {
    FileLook look;
    NameChange change;
    change.name = name;
    if (look_at(directory->fd.get(), name, &look) == 0) change.after = look.file;
    changes.push_back(std::move(change));
  }
  learn(directory, changes);
}

void LoggedNames::forget_names(const DirectoryPtr& directory) {
  const std::lock_guard table(mutex_);
  std::erase_if(homes_, [&](const auto& home) { return home.second.directory == directory; });
  directory->known = KnownNames();
}

void LoggedNames::learn(const DirectoryPtr& directory, const Changes& changes) {
  KnownNames& known = directory->known;
  {
    const std::lock_guard table(mutex_);
    for (const NameChange& change : changes) {
      const auto old = known.names.find(change.name);
      if (old == known.names.end() || !old->second) continue;
      const auto home = homes_.find({directory->key.store, old->second->id});
      if (home != homes_.end() && home->second.directory == directory) homes_.erase(home);
    }
    for (const NameChange& change : changes) {
      if (change.after)
        homes_[{directory->key.store, change.after->id}] = {directory, *change.after};
    }
  }
  for (const NameChange& change : changes) {
    if (change.after || !known.has_all) known.names[change.name] = change.after;
    if (!change.after && known.has_all) known.names.erase(change.name);
  }
  if (known.names.size() > kNamesKnown) forget_names(directory);
}

}  // namespace cairn::node
