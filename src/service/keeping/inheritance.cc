// SPDX-License-Identifier: Apache-2.0
#include "service/keeping/inheritance.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"

namespace cairn::node {
namespace {

// All but standard input, output and error, and the one that reads the list.
std::vector<int> open_descriptors() {
  std::vector<int> open;
  DIR* directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return open;
  while (const dirent* entry = ::readdir(directory)) {
    const int fd = entry->d_name[0] == '.' ? -1 : ::atoi(entry->d_name);
    if (fd > STDERR_FILENO && fd != ::dirfd(directory)) open.push_back(fd);
  }
  ::closedir(directory);
  return open;
}

// Where it was accepted; empty when it was not, or listens itself.
std::string accepted_at(int fd) {
  sockaddr_un address{};
  socklen_t length = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  int listens = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens != 0) return {};
  if (address.sun_family != AF_UNIX) return {};
  return {address.sun_path, ::strnlen(address.sun_path, sizeof address.sun_path)};
}

// As far as the kernel knows without asking a store, which may err or hang.
std::optional<mode_t> mode_of(int fd) {
  struct statx status{};
  constexpr int kFlags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
  if (::statx(fd, "", kFlags, STATX_TYPE | STATX_MODE, &status) != 0) return std::nullopt;
  return status.stx_mode;
}

// What statx(2) says of a pidfd depends on the kernel.
bool is_process(int fd) {
  return ::syscall(SYS_pidfd_send_signal, fd, 0, nullptr, 0) == 0 || errno != EBADF;
}

// Whether a descriptor with this label can be what it says: a label that was left behind by mistake
// must not make a user's file the node's lock.
bool fits(KeptKind kind, int fd, mode_t mode) {
  switch (kind) {
    case KeptKind::kControlMemory:
    case KeptKind::kDataMemory:
    case KeptKind::kPool:
    case KeptKind::kNodeLock:
      return S_ISREG(mode);
    case KeptKind::kLauncher:
      return S_ISFIFO(mode);
    case KeptKind::kClientListener:
    case KeptKind::kControlListener:
    case KeptKind::kClient:
    case KeptKind::kLedger:
    case KeptKind::kControl:
      return S_ISSOCK(mode);
    case KeptKind::kProcess:
      return is_process(fd);
    case KeptKind::kNone:
      break;
  }
  return false;
}

}  // namespace

Inheritance::Inheritance(KeptDescriptors& labels) : labels_(labels) {
  for (const int fd : open_descriptors()) sort(UniqueFd(fd));
}

// A number that is closed here is another descriptor's soon.
Inheritance::~Inheritance() {
  for (const InheritedFd& each : labelled_) {
    if (each.fd) labels_.forget(each.fd.get());
  }
}

void Inheritance::sort(UniqueFd fd) {
  if (fd.get() == labels_.memory_fd()) {
    (void)fd.release();
    return;
  }
  const std::optional<mode_t> known = mode_of(fd.get());
  if (!known) return;
  const mode_t mode = *known;
  const KeptLabel label = labels_.of(fd.get());
  if (fits(label.kind, fd.get(), mode)) {
    labelled_.push_back(InheritedFd{std::move(fd), label});
    return;
  }
  if (label.kind != KeptKind::kNone) labels_.forget(fd.get());
  if (S_ISSOCK(mode) && !accepted_at(fd.get()).empty()) {
    connections_.push_back(std::move(fd));
  } else if (S_ISREG(mode)) {
    const int flags = ::fcntl(fd.get(), F_GETFL);
    if ((flags & O_PATH) != 0) return;
    const bool is_writable = (flags & O_ACCMODE) != O_RDONLY;
    (is_writable ? writable_files_ : readable_files_).push_back(std::move(fd));
  }
}

UniqueFd Inheritance::take(KeptKind kind, std::uint64_t number) {
  CAIRN_CHECK(kind != KeptKind::kNone);
  for (InheritedFd& each : labelled_) {
    if (each.fd && each.label.kind == kind && each.label.number == number)
      return std::move(each.fd);
  }
  return UniqueFd();
}

std::vector<InheritedFd> Inheritance::take_all(KeptKind kind) {
  CAIRN_CHECK(kind != KeptKind::kNone);
  std::vector<InheritedFd> all;
  for (InheritedFd& each : labelled_) {
    if (each.fd && each.label.kind == kind) all.push_back(std::move(each));
  }
  return all;
}

std::vector<UniqueFd> Inheritance::take_connections(const std::string& path) {
  std::vector<UniqueFd> all;
  for (UniqueFd& each : connections_) {
    if (each && accepted_at(each.get()) == path) all.push_back(std::move(each));
  }
  return all;
}

std::vector<int> Inheritance::sockets() const {
  std::vector<int> all;
  for (const InheritedFd& each : labelled_) all.push_back(each.fd.get());
  for (const UniqueFd& each : connections_) all.push_back(each.get());
  std::erase(all, -1);
  return all;
}

void Inheritance::give(int fd) {
  CAIRN_CHECK(fd >= 0);
  for (InheritedFd& each : labelled_)
    if (each.fd.get() == fd) (void)each.fd.release();
  for (UniqueFd& each : connections_)
    if (each.get() == fd) (void)each.release();
}

}  // namespace cairn::node
