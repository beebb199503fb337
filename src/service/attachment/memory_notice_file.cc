// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/memory_notice_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/check.h"
#include "base/private_file.h"
#include "base/status.h"
#include "frontends/protocol/protocol.h"
#include "service/process/unique_fd.h"

namespace cairn::node {
namespace {

using protocol::MemoryNotice;

MemoryNotice::File file_of(int fd) {
  struct stat status{};
  MemoryNotice::File file;
  if (fd < 0 || ::fstat(fd, &status) != 0) return file;
  file.number = fd;
  file.flags = ::fcntl(fd, F_GETFL);
  file.inode = status.st_ino;
  file.device_major = gnu_dev_major(status.st_dev);
  file.device_minor = gnu_dev_minor(status.st_dev);
  return file;
}

MemoryNotice notice_of(const NodeMemory& memory) {
  MemoryNotice notice;
  notice.pid = ::getpid();
  notice.shape = memory.shape();
  notice.control = file_of(memory.control().fd());
  notice.data = file_of(memory.data().fd());
  for (unsigned tier = 1; tier < kTiersMax; ++tier) {
    if (notice.shape.tier_bytes[tier] != 0)
      notice.tiers[tier] = file_of(memory.tier(static_cast<TierId>(tier)).on_device({}).descriptor);
  }
  CAIRN_CHECK(notice.control.number >= 0 && notice.data.number >= 0);
  return notice;
}

// Nobody finds half of it: it gets its name when it is whole.
Status write_whole(const MemoryNotice& notice, const std::string& path) {
  const std::string unfinished = path + ".new";
  const UniqueFd fd(open_new_file(unfinished.c_str(), 0600));
  if (!fd) return Status::from_errno(-fd.get(), "cannot make " + unfinished);
  if (::write(fd.get(), &notice, sizeof notice) == static_cast<ssize_t>(sizeof notice) &&
      ::rename(unfinished.c_str(), path.c_str()) == 0)
    return Status::ok();
  const Status failed = Status::from_errno(errno, "cannot make " + path);
  ::unlink(unfinished.c_str());
  return failed;
}

}  // namespace

void write_notice(const NodeMemory& memory, const std::string& socket_path, AttachEvents& events) {
  // Where no new one can be made there must not be an older node's.
  remove_notice(socket_path);
  const Status written = write_whole(notice_of(memory), socket_path + protocol::kNoticeSuffix);
  if (!written) events.log("processes wait until they are welcome: " + written.message());
}

void remove_notice(const std::string& socket_path) {
  ::unlink((socket_path + protocol::kNoticeSuffix).c_str());
}

}  // namespace cairn::node
