// SPDX-License-Identifier: Apache-2.0
#include "service/keeping/standby.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "base/check.h"
#include "base/system_call.h"
#include "service/process/log.h"
#include "service/process/thread_start.h"

extern char** environ;

namespace cairn::node {
namespace {

constexpr int kAgainMs = 1000;  // where the machine has no process to give

UniqueFd watch_process(pid_t process) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}

// What the standby needs, made before it is: it may not allocate.
struct StandbyPlan {
  const char* program = "/proc/self/exe";
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  int service = -1;  // a pidfd
  const KeptLife* life = nullptr;
};

// The kernel's record of a directory entry.
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t next;
  std::uint16_t length;
  std::uint8_t type;
  char name[];
};

int number_in(const char* text) {
  int number = 0;
  for (; *text >= '0' && *text <= '9'; ++text) number = number * 10 + (*text - '0');
  return *text == '\0' ? number : -1;
}

// Calls visit(fd) for each descriptor that is open, without a library.
template <typename Visit>
void for_each_descriptor(Visit&& visit) {
  const int directory = sys::openat(AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY);
  if (directory < 0) return;
  alignas(8) char entries[4096];
  for (;;) {
    const long bytes = sys::call(SYS_getdents64, directory, sys::word(entries), sizeof entries);
    if (bytes <= 0) break;
    for (long at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(entries + at);
      const int fd = entry->name[0] == '.' ? -1 : number_in(entry->name);
      if (fd > STDERR_FILENO && fd != directory) visit(fd);
      at += entry->length;
    }
  }
  sys::close(directory);
}

// The process is a copy of one with many threads: no lock of the library can be trusted, so nothing
// but system calls from here on.
[[noreturn]] void stand_by(const StandbyPlan& plan) {
  constexpr char kName[] = "cairn-keeper";
  sys::call(SYS_prctl, PR_SET_NAME, sys::word(kName), 0, 0, 0);
  for (;;) {
    pollfd entry{plan.service, POLLIN, 0};
    const long ready = sys::call(SYS_ppoll, sys::word(&entry), 1, 0, 0, 0);
    if (ready == 1 || (ready < 0 && ready != -EINTR)) break;
  }
  if (plan.life->done.load() == 0) {
    for_each_descriptor([](int fd) { sys::fcntl(fd, F_SETFD, 0); });
    sys::call(SYS_execve, sys::word(plan.program), sys::word(plan.arguments),
              sys::word(plan.environment));
  }
  for (;;) sys::call(SYS_exit_group, 0);
}

}  // namespace

KeeperWatch::KeeperWatch(const Succession& succession, std::vector<std::string> arguments,
                         std::function<void(pid_t)> on_change)
    : life_(*succession.life),
      memory_fd_(succession.memory.fd()),
      keeper_(succession.keeper),
      first_parent_(succession.keeper),
      arguments_(std::move(arguments)),
      on_change_(std::move(on_change)) {}

void KeeperWatch::start() {
  if (keeper_ <= 0) return;
  stop_event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  self_ = watch_process(::getpid());
  if (!stop_event_ || !self_) return;
  if (!start_thread(&thread_, [this] { watch(); }))
    log::warn("no thread can be had to watch the node's keeper: nobody replaces it");
}

void KeeperWatch::stop() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  (void)!::write(stop_event_.get(), &one, sizeof one);
  thread_.join();
}

void KeeperWatch::watch() {
  for (;;) {
    UniqueFd process = keeper_ > 0 ? watch_process(keeper_) : UniqueFd();
    // Its number may be another process's by now.
    if (keeper_ == first_parent_ && ::getppid() != first_parent_) process.reset();
    pollfd entries[2] = {{stop_event_.get(), POLLIN, 0}, {process.get(), POLLIN, 0}};
    const bool is_hopeless = !process && keeper_ == 0;
    if (process || is_hopeless) {
      const int ready = ::poll(entries, 2, is_hopeless ? kAgainMs : -1);
      if (ready < 0 && errno == EINTR) continue;
    }
    if (entries[0].revents != 0) return;
    if (keeper_ > 0 && keeper_ != first_parent_) ::waitpid(keeper_, nullptr, 0);
    const bool had_one = keeper_ != 0;
    keeper_ = make_standby();
    if (keeper_ > 0) life_.new_keepers.fetch_add(1);
    if (keeper_ > 0 || had_one) on_change_(keeper_);
  }
}

// Returns its number, or 0. What the child needs stays where it is until the child has executed
// another program: the child has a copy of it.
pid_t KeeperWatch::make_standby() const {
  CAIRN_CHECK(memory_fd_ >= 0);
  std::vector<std::string> texts = arguments_;
  texts.push_back(std::to_string(memory_fd_));
  std::vector<char*> words;
  for (std::string& text : texts) words.push_back(text.data());
  words.push_back(nullptr);
  StandbyPlan plan;
  plan.arguments = words.data();
  plan.environment = environ;
  plan.life = &life_;
  plan.service = self_.get();
  const long child = ::syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) stand_by(plan);
  return child > 0 ? static_cast<pid_t>(child) : 0;
}

}  // namespace cairn::node
