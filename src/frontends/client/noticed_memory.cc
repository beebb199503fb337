// SPDX-License-Identifier: Apache-2.0
#include "frontends/client/noticed_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/client/descriptor_floor.h"

namespace cairn {
namespace {

using protocol::MemoryNotice;

// Backwards from `end`. Returns where the text begins.
char* write_number(char* end, std::uint32_t number) {
  do {
    *--end = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  return end;
}

// -1 when it cannot be opened, or the number means another file by now.
int open_noticed(std::int32_t service, const MemoryNotice::File& file) {
  constexpr char kDirectory[] = "/proc/";
  constexpr char kBetween[] = "/fd/";
  char text[sizeof kDirectory + sizeof kBetween + 2 * 10];
  char* begin = text + sizeof text;
  *--begin = '\0';
  begin = write_number(begin, static_cast<std::uint32_t>(file.number));
  begin -= sizeof kBetween - 1;
  std::memcpy(begin, kBetween, sizeof kBetween - 1);
  begin = write_number(begin, static_cast<std::uint32_t>(service));
  begin -= sizeof kDirectory - 1;
  std::memcpy(begin, kDirectory, sizeof kDirectory - 1);
  CAIRN_DCHECK(begin >= text);
  const int flags = O_RDWR | O_CLOEXEC | (file.flags & O_DIRECT);
  const int fd = sys::openat(AT_FDCWD, begin, flags);
  if (fd < 0) return -1;
  struct ::statx status;
  if (sys::statx(fd, "", AT_EMPTY_PATH, STATX_INO, &status) == 0 && status.stx_ino == file.inode &&
      status.stx_dev_major == file.device_major && status.stx_dev_minor == file.device_minor)
    return fd;
  sys::close(fd);
  return -1;
}

// A notice names the memory that this process trusts, so nobody else may be able to write it.
bool is_private_file(int fd) {
  struct ::statx status;
  if (sys::statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MODE | STATX_UID, &status) != 0)
    return false;
  return S_ISREG(status.stx_mode) && status.stx_uid == sys::geteuid() &&
         (status.stx_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

std::optional<MemoryNotice> read_notice(const char* socket_path, std::int32_t service) {
  char path[sizeof(sockaddr_un::sun_path) + sizeof protocol::kNoticeSuffix];
  if (std::strlen(socket_path) + sizeof protocol::kNoticeSuffix > sizeof path) return std::nullopt;
  std::strcpy(path, socket_path);
  std::strcat(path, protocol::kNoticeSuffix);
  const int fd = sys::openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  MemoryNotice notice;
  const long size =
      is_private_file(fd) ? sys::call(SYS_read, fd, sys::word(&notice), sizeof notice) : -1;
  sys::close(fd);
  const bool is_ours = size == static_cast<long>(sizeof notice) &&
                       notice.magic == protocol::kMagic && notice.version == protocol::kVersion &&
                       notice.layout_version == kLayoutVersion && notice.pid == service;
  if (!is_ours) return std::nullopt;
  return notice;
}

std::optional<NoticedMemory> map_noticed(const MemoryNotice& notice) {
  NoticedMemory found;
  found.tier_fds.fill(-1);
  const auto close_tiers = [&found] {
    for (const int fd : found.tier_fds) {
      if (fd >= 0) sys::close(fd);
    }
  };
  for (unsigned tier = 1; tier < kTiersMax; ++tier) {
    if (notice.shape.tier_bytes[tier] == 0) continue;
    const int fd = open_noticed(notice.pid, notice.tiers[tier]);
    if (fd < 0) {
      close_tiers();
      return std::nullopt;
    }
    found.tier_fds[tier] = move_high(fd);
  }
  const int control = open_noticed(notice.pid, notice.control);
  const int data = control < 0 ? -1 : open_noticed(notice.pid, notice.data);
  if (data < 0) {
    if (control >= 0) sys::close(control);
    close_tiers();
    return std::nullopt;
  }
  Result<NodeMemory> memory = NodeMemory::attach(notice.shape, control, data, found.tier_fds);
  if (!memory) return std::nullopt;
  found.memory = std::move(memory.value());
  found.control_inode = notice.control.inode;
  return found;
}

}  // namespace cairn
