// SPDX-License-Identifier: Apache-2.0
#include "service/logged_files/directory_watch.h"

#include <errno.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/descriptor_path.h"

namespace cairn::node {
namespace {

// The kernel names the file whose attribute has changed; without a name it is the directory itself.
constexpr std::uint32_t kDeeds = IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                 IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
// A directory that changes more between two looks has its events lost.
constexpr std::size_t kWaitingMax = 4096;

NameEvent event_of(const inotify_event& told) {
  NameEvent event;
  event.move = told.cookie;
  if (told.len != 0) event.name = told.name;
  if ((told.mask & IN_ATTRIB) != 0) event.name = ".";
  const bool is_file = told.len != 0 && (told.mask & IN_ISDIR) == 0;
  if (!is_file) return event;
  if ((told.mask & IN_CREATE) != 0) event.deed = NameDeed::kMade;
  if ((told.mask & IN_DELETE) != 0) event.deed = NameDeed::kRemoved;
  if ((told.mask & IN_MOVED_FROM) != 0) event.deed = NameDeed::kMovedAway;
  if ((told.mask & IN_MOVED_TO) != 0) event.deed = NameDeed::kMovedHere;
  return event;
}

}  // namespace

DirectoryWatch::DirectoryWatch() : queue_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

DirectoryWatch::~DirectoryWatch() {
  if (queue_ >= 0) ::close(queue_);
}

int DirectoryWatch::add(int directory) {
  CAIRN_CHECK(directory >= 0);
  if (queue_ < 0) return -EMFILE;
  const std::lock_guard lock(mutex_);
  const int number = ::inotify_add_watch(queue_, DescriptorPath(directory).text, kDeeds);
  if (number < 0) return -errno;
  waiting_.try_emplace(number);
  return number;
}

void DirectoryWatch::remove(int number) {
  const std::lock_guard lock(mutex_);
  if (waiting_.erase(number) != 0) ::inotify_rm_watch(queue_, number);
}

std::vector<NameEvent> DirectoryWatch::take(int number) {
  const std::lock_guard lock(mutex_);
  read_all();
  const auto found = waiting_.find(number);
  if (found == waiting_.end()) return {NameEvent()};
  return std::exchange(found->second, {});
}

// Requires: the lock.
void DirectoryWatch::lose_all() {
  for (auto& entry : waiting_) entry.second.assign(1, NameEvent());
}

// Requires: the lock.
void DirectoryWatch::read_all() {
  alignas(inotify_event) char bytes[16384];
  for (;;) {
    const ssize_t got = ::read(queue_, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return lose_all();
    for (ssize_t at = 0; at < got;) {
      inotify_event told;
      std::memcpy(&told, bytes + at, sizeof told);
      if ((told.mask & IN_Q_OVERFLOW) != 0) lose_all();
      const bool is_of_file = (told.mask & IN_ATTRIB) != 0 && told.len != 0;
      const auto found = is_of_file ? waiting_.end() : waiting_.find(told.wd);
      if (found != waiting_.end()) {
        if (found->second.size() >= kWaitingMax) found->second.assign(1, NameEvent());
        found->second.push_back(event_of(reinterpret_cast<const inotify_event&>(bytes[at])));
      }
      at += static_cast<ssize_t>(sizeof told + told.len);
    }
  }
}

}  // namespace cairn::node
