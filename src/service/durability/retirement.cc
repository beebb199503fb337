// SPDX-License-Identifier: Apache-2.0
#include "service/durability/retirement.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <unordered_map>

#include "base/check.h"
#include "base/clock.h"

namespace cairn::node {
namespace {

using Outcome = LogAttempt::Outcome;

// As many files get an fsync each; more of a file system, one for all of it.
constexpr std::size_t kFewMax = 8;
// While something is in the log, the files that rest are looked for so often.
constexpr auto kLookPause = std::chrono::milliseconds(500);
constexpr auto kIdlePause = std::chrono::hours(1);
// Between two attempts on a store that takes nothing.
constexpr auto kFailedPause = std::chrono::seconds(1);
constexpr std::size_t kPressingMax = 64;

// Everything of the file system that the path leads to, if it is that device. Returns 0 or errno.
int sync_around(std::string path, dev_t device) {
  UniqueFd fd;
  while (!fd && path.starts_with('/')) {
    path.erase(path.rfind('/'));
    fd.reset(::open(path.empty() ? "/" : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0 || status.st_dev != device) return ENODEV;
  return ::syncfs(fd.get()) == 0 ? 0 : errno;
}

}  // namespace

Retirement::Retirement(const RetirementParts& parts)
    : memory_(parts.memory),
      logged_(parts.logged),
      names_(parts.names),
      files_(parts.files),
      flusher_(parts.flusher),
      counts_(parts.counts) {}

void Retirement::start() {
  CAIRN_CHECK(!thread_.joinable());
  CAIRN_CHECK(!stopping_);
  logged_.log().on_pressure([this] { kick(); });
  thread_ = std::thread([this] { work(); });
}

void Retirement::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Retirement::kick() {
  {
    const std::lock_guard lock(mutex_);
    if (is_kicked_) return;
    is_kicked_ = true;
  }
  changed_.notify_all();
}

void Retirement::work() {
  pthread_setname_np(pthread_self(), "cairn-retire");
  std::chrono::nanoseconds pause = kLookPause;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, pause, [this] { return is_kicked_ || stopping_; });
    if (stopping_) return;
    is_kicked_ = false;
    lock.unlock();
    const int left = names_.store_left();
    remove_gone();
    Files due = pressing();
    const std::vector<durable::RemovedObject> removed = logged_.log().removed();
    const bool is_removed_due = this->is_removed_due(removed);
    const bool is_pressed = !due.empty();
    if (!is_pressed) due = rested();
    // A name first: the file's data stays in the log until its store has the name.
    int error = names_.retire_pressing(logged_.log().pressure());
    if (error == 0) error = names_.retire_rested(kRestNs);
    if (error == 0 && !due.empty()) error = retire(due);
    // Whatever became of the others: a full store keeps those of no other in the log.
    if (const int lost = is_removed_due ? retire_removed(removed) : 0; error == 0) error = lost;
    if (error == 0) error = left;
    // Before the look: what comes into the log after it wakes this thread.
    is_idle_.store(true);
    const bool is_idle =
        logged_.all().empty() && names_.is_idle() && logged_.log().removed().empty();
    is_idle_.store(is_idle);
    pause = is_idle ? std::chrono::nanoseconds(kIdlePause) : std::chrono::nanoseconds(kLookPause);
    if (error < 0) pause = kFailedPause;
    lock.lock();
    if (is_pressed && error == 0) is_kicked_ = true;
  }
}

Retirement::Files Retirement::pressing() const {
  const std::vector<durable::PressingObject> objects = logged_.log().pressure();
  if (objects.empty()) return {};
  std::unordered_map<std::uint64_t, LoggedFiles::InLog> by_number;
  for (const LoggedFiles::InLog& file : logged_.all())
    by_number.emplace(durable::raw(file.number), file);
  Files due;
  for (const durable::PressingObject& object : objects) {
    const auto found = by_number.find(durable::raw(object.object));
    if (found != by_number.end() && due.size() < kPressingMax) due.push_back(found->second);
  }
  return due;
}

Retirement::Files Retirement::rested() const {
  Files due;
  const std::int64_t now_ns = monotonic_ns();
  for (const LoggedFiles::InLog& file : logged_.all()) {
    if (now_ns - file.logged_ns >= kRestNs) due.push_back(file);
  }
  return due;
}

int Retirement::retire_all(std::uint64_t device) {
  Files due;
  for (const LoggedFiles::InLog& file : logged_.all()) {
    if (device == 0 || raw(memory_.objects().at(file.object).store()) == device)
      due.push_back(file);
  }
  int error = names_.retire_all(device);
  if (const int retired = due.empty() ? 0 : retire(due); error == 0) error = retired;
  std::vector<durable::RemovedObject> removed = logged_.log().removed();
  std::erase_if(removed, [device](const durable::RemovedObject& object) {
    return device != 0 && raw(object.identity.key.store) != device;
  });
  if (const int retired = retire_removed(removed); error == 0) error = retired;
  return error;
}

int Retirement::retire(const Files& files) {
  if (files.size() > kFewMax) return retire_together(files);
  int result = 0;
  for (const LoggedFiles::InLog& file : files) {
    const int error = flusher_.flush_now(file.object, true);
    if (error == 0) {
      counts_.retired.fetch_add(1, std::memory_order_relaxed);
    } else if (result == 0) {
      result = error;
    }
  }
  return result;
}

int Retirement::retire_together(const Files& files) {
  std::map<dev_t, std::vector<std::pair<ObjectIndex, LogMark>>> stored;
  int result = 0;
  for (const LoggedFiles::InLog& file : files) {
    LogMark mark = logged_.begin_storing(file.object);
    const int error = flusher_.flush_now(file.object, false);
    if (error < 0) {
      if (result == 0) result = error;
      continue;
    }
    mark.owed = memory_.objects().at(file.object).store_owed.load();
    const auto device = static_cast<dev_t>(raw(memory_.objects().at(file.object).store()));
    stored[device].emplace_back(file.object, mark);
  }
  for (const auto& [device, marks] : stored) {
    int error = -files_.unsynced().sync_store(device);
    if (error < 0 && result == 0) result = error;
    for (const auto& [object, mark] : marks) {
      int ended = error < 0 ? error : logged_.end_storing(object, mark);
      // Some of the store may be lost, not this file.
      if (ended == -EIO) ended = flusher_.flush_now(object, true);
      if (ended == 0) counts_.retired.fetch_add(1, std::memory_order_relaxed);
      if (result == 0) result = ended;
    }
  }
  return result;
}

// A file that nobody can reach any more, and whose end nobody has told.
void Retirement::remove_gone() {
  for (const LoggedFiles::InLog& file : logged_.all()) {
    const Object& object = memory_.objects().at(file.object);
    if (object.has(kObjectRetired) && object.opens.load() == 0)
      (void)logged_.log_removed(file.object);
  }
}

bool Retirement::is_removed_due(const std::vector<durable::RemovedObject>& removed) {
  if (removed.empty()) removed_since_ns_ = 0;
  if (removed.empty()) return false;
  if (removed_since_ns_ == 0) removed_since_ns_ = monotonic_ns();
  const bool rests = monotonic_ns() - removed_since_ns_ >= kRestNs;
  if (rests) removed_since_ns_ = 0;
  return rests || !logged_.log().pressure().empty();
}

int Retirement::retire_removed(const std::vector<durable::RemovedObject>& removed) {
  int result = 0;
  std::map<dev_t, int> synced;
  for (const durable::RemovedObject& object : removed) {
    int error = lose(object, &synced);
    // Nobody uses its store, nor leads its path there: recovery finds out.
    if (error == -ENODEV) continue;
    if (error == 0) {
      const Status done = logged_.log().retire(object.object, object.removed, {});
      // Another thread may have said so.
      const bool is_said = done || done.code() == StatusCode::kNotFound;
      if (!is_said) error = done.error_number() != 0 ? -done.error_number() : -EIO;
    }
    if (result == 0) result = error;
  }
  if (removed.empty() || result < 0) return result;
  durable::DurableLog& log = logged_.log();
  return log.commit_within(log.appended(), kCommitMax) ? 0 : -EIO;
}

// The word comes before the deed: a file that is there after all, because its process has died in
// between or may not remove it, is stored. Returns 0 or -errno.
int Retirement::lose(const durable::RemovedObject& object, std::map<dev_t, int>* synced) {
  const ObjectKey& key = object.identity.key;
  if (const int error = names_.store_names_of(key); error < 0) return error;
  const ObjectIndex index = memory_.objects().find(key);
  const bool is_there =
      index != ObjectIndex::kNone && !memory_.objects().at(index).has(kObjectUnlinked);
  if (is_there) {
    const int error = flusher_.flush_now(index, true);
    if (error != -ENODEV) return error;
  }
  // All of the store: an fsync of the folder would do if its path were sure to be the right one.
  const auto device = static_cast<dev_t>(raw(key.store));
  const auto [store, is_new] = synced->try_emplace(device, 0);
  if (is_new) store->second = files_.unsynced().sync_store(device);
  if (is_new && store->second == ENODEV) store->second = sync_around(object.identity.path, device);
  return -store->second;
}

}  // namespace cairn::node
