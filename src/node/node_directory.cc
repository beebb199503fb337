// SPDX-License-Identifier: Apache-2.0
#include "node/node_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cairn::node {

NodeDirectory::~NodeDirectory() {
  if (!lock_) return;
  ::unlink(client_socket().c_str());
  ::unlink(control_socket().c_str());
  ::unlink((path_ + "/node.pid").c_str());
}

Result<NodeDirectory> NodeDirectory::open(const std::string& path, const std::string& name) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return Status::from_errno(errno, "cannot create the node directory " + path);
  }
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0)
    return Status::from_errno(errno, "cannot look at " + path);
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
    return Status(StatusCode::kDenied, path + " is not a private directory of this user");
  }
  NodeDirectory directory;
  directory.path_ = path;
  UniqueFd lock(
      ::open((path + "/node.pid").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return Status::from_errno(errno, "cannot create node.pid in " + path);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Status(StatusCode::kExists, "a node named " + name + " is running already");
  }
  const std::string text = std::to_string(::getpid()) + "\n";
  if (::ftruncate(lock.get(), 0) != 0 || ::write(lock.get(), text.data(), text.size()) < 0) {
    return Status::from_errno(errno, "cannot write node.pid in " + path);
  }
  directory.lock_ = std::move(lock);
  return directory;
}

}  // namespace cairn::node
