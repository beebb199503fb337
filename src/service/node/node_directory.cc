// SPDX-License-Identifier: Apache-2.0
#include "service/node/node_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "base/check.h"
#include "base/private_file.h"
#include "service/process/log_file.h"

namespace cairn::node {
namespace {

// False where a node has it. A program that looks for nodes shares the lock for a moment, and so
// does who starts a node at the same time and asks the same.
bool lock_for_node(int fd) {
  constexpr int kLooksMax = 200;
  constexpr timespec kPause{0, 5'000'000};
  for (int look = 1; ::flock(fd, LOCK_EX | LOCK_NB) != 0; ++look) {
    if (look == kLooksMax || ::flock(fd, LOCK_SH | LOCK_NB) != 0) return false;
    ::flock(fd, LOCK_UN);
    ::nanosleep(&kPause, nullptr);
  }
  return true;
}

}  // namespace

NodeDirectory::~NodeDirectory() {
  // Another node may have the name by now.
  if (!lock_ || !has_lock_file()) return;
  if (!keeps_client_socket_) ::unlink(client_socket().c_str());
  ::unlink(control_socket().c_str());
  ::unlink((path_ + "/node.pid").c_str());
}

Result<NodeDirectory> NodeDirectory::open(const std::string& path, const std::string& name) {
  NodeDirectory directory;
  directory.path_ = path;
  directory.name_ = name;
  CAIRN_RETURN_IF_ERROR(directory.take_lock());
  directory.read_configuration();
  directory.begin_watch();
  return directory;
}

Result<NodeDirectory> NodeDirectory::adopt(const std::string& path, const std::string& name,
                                           UniqueFd lock) {
  if (!lock) return open(path, name);
  NodeDirectory directory;
  directory.path_ = path;
  directory.name_ = name;
  directory.lock_ = std::move(lock);
  // No reason to give up what only this process can store.
  if (const Status written = directory.write_pid(directory.lock_.get()); !written)
    log_warning(written.message());
  directory.read_configuration();
  directory.begin_watch();
  return directory;
}

void NodeDirectory::read_configuration() {
  std::ifstream stream(path_ + "/config.yaml", std::ios::binary);
  configuration_.assign(std::istreambuf_iterator<char>(stream), {});
}

Status NodeDirectory::write_pid(int lock) const {
  const std::string text = std::to_string(::getpid()) + "\n";
  if (::ftruncate(lock, 0) != 0 || ::pwrite(lock, text.data(), text.size(), 0) < 0)
    return Status::from_errno(errno, "cannot write node.pid in " + path_);
  return Status::ok();
}

Status NodeDirectory::take_lock() {
  if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST) {
    return Status::from_errno(errno, "cannot create the node directory " + path_);
  }
  struct stat status{};
  if (::lstat(path_.c_str(), &status) != 0)
    return Status::from_errno(errno, "cannot look at " + path_);
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
    return Status(StatusCode::kDenied, path_ + " is not a private directory of this user");
  }
  UniqueFd lock(
      ::open((path_ + "/node.pid").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return Status::from_errno(errno, "cannot create node.pid in " + path_);
  if (!lock_for_node(lock.get())) {
    return Status(StatusCode::kExists, "a node named " + name_ + " is running already");
  }
  CAIRN_RETURN_IF_ERROR(write_pid(lock.get()));
  if (!lock_) {
    lock_ = std::move(lock);
  } else if (::dup3(lock.get(), lock_.get(), O_CLOEXEC) < 0) {
    return Status::from_errno(errno, "cannot keep the lock in " + path_);
  }
  ::unlink((path_ + "/stored").c_str());  // of a node before us
  ::unlink((path_ + "/rescued").c_str());
  ::unlink((path_ + "/old-log").c_str());
  return Status::ok();
}

void NodeDirectory::begin_watch() {
  constexpr std::uint32_t kGone =
      IN_DELETE | IN_DELETE_SELF | IN_MOVED_FROM | IN_MOVE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW;
  watch_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (watch_ && ::inotify_add_watch(watch_.get(), path_.c_str(), kGone) < 0) watch_.reset();
}

bool NodeDirectory::is_intact() {
  alignas(inotify_event) char events[4096];
  while (watch_ && ::read(watch_.get(), events, sizeof events) > 0) {
  }
  const auto is_socket = [](const std::string& path) {
    struct stat status{};
    return ::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
  };
  return has_lock_file() && is_socket(client_socket()) && is_socket(control_socket());
}

void NodeDirectory::note_stored() const {
  CAIRN_CHECK(lock_.get() >= 0);  // the name is this node's
  const UniqueFd made(open_new_file((path_ + "/stored").c_str(), 0600));
}

void NodeDirectory::note_rescue(const RescueNote& note) const {
  CAIRN_CHECK(lock_.get() >= 0);
  const std::string text = note.path + "\n" + std::to_string(note.files) + " " +
                           std::to_string(note.saved_bytes) + " " +
                           std::to_string(note.lost_bytes) + "\n";
  const UniqueFd made(open_new_file((path_ + "/rescued").c_str(), 0600));
  if (made) (void)!::write(made.get(), text.data(), text.size());
}

void NodeDirectory::note_old_log(const std::string& tier) const {
  CAIRN_CHECK(lock_.get() >= 0);
  const std::string text = tier + "\n";
  const UniqueFd made(open_new_file((path_ + "/old-log").c_str(), 0600));
  if (made) (void)!::write(made.get(), text.data(), text.size());
}

// Whether node.pid is still the file that this node has locked.
bool NodeDirectory::has_lock_file() const {
  struct stat named{};
  struct stat held{};
  return ::lstat((path_ + "/node.pid").c_str(), &named) == 0 && ::fstat(lock_.get(), &held) == 0 &&
         named.st_ino == held.st_ino && named.st_dev == held.st_dev;
}

Status NodeDirectory::restore() {
  CAIRN_CHECK(lock_.get() >= 0);
  if (!has_lock_file()) {
    // The run root may be gone as well; what is above it is not ours to make.
    ::mkdir(path_.substr(0, path_.rfind('/')).c_str(), 0700);
    CAIRN_RETURN_IF_ERROR(take_lock());
  }
  const std::string file = path_ + "/config.yaml";
  if (!configuration_.empty() && ::access(file.c_str(), F_OK) != 0) {
    const UniqueFd made(open_new_file(file.c_str(), 0600));
    if (!made || ::write(made.get(), configuration_.data(), configuration_.size()) !=
                     static_cast<ssize_t>(configuration_.size()))
      return Status::from_errno(made ? ENOSPC : EACCES, "cannot write " + file);
  }
  begin_watch();
  return Status::ok();
}

}  // namespace cairn::node
