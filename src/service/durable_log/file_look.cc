// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/file_look.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "service/durable_log/file_handle.h"

namespace cairn::durable {

int look_at(int directory, const std::string& name, FileLook* look) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const int fd = ::openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno;
  *look = FileLook();
  struct ::statx& status = look->status;
  const unsigned wanted = STATX_BASIC_STATS | STATX_BTIME;
  const int error = ::statx(fd, "", AT_EMPTY_PATH, wanted, &status) == 0 ? 0 : errno;
  look->file.id.inode = status.stx_ino;
  if ((status.stx_mask & STATX_BTIME) != 0)
    look->file.id.birth_ns = status.stx_btime.tv_sec * kSecond + status.stx_btime.tv_nsec;
  look->file.handle = handle_of(fd);
  ::close(fd);
  return error;
}

}  // namespace cairn::durable
