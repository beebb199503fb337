// SPDX-License-Identifier: Apache-2.0
// A node that logs a file's bytes and dies: write_log TIER FILE OFFSET TEXT [FILE OFFSET TEXT]...
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "service/durable_log/durable_log.h"
#include "service/durable_log/file_handle.h"
#include "service/replay/log_index.h"

using namespace cairn;
using namespace cairn::durable;

namespace {

bool log_write(DurableLog& log, const std::string& path, std::uint64_t offset,
               const std::string& text) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct statx found{};
  if (fd < 0 || ::statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &found) != 0) {
    return false;
  }
  FileIdentity identity;
  identity.key =
      file_key(0, found.stx_ino, found.stx_btime.tv_sec * kSecondNs + found.stx_btime.tv_nsec);
  identity.path = path;
  identity.handle = handle_of(fd);
  ::close(fd);
  const FileState store{found.stx_size, found.stx_mtime.tv_sec * kSecondNs +
                                            static_cast<std::int64_t>(found.stx_mtime.tv_nsec)};
  auto object = log.add_object(identity, store);
  const FileState after{std::max<std::uint64_t>(store.size, offset + text.size()), kSecondNs};
  auto lsn = log.append_data(*object, {offset, std::as_bytes(std::span(text))}, after);
  return lsn && log.commit(*lsn).is_ok();
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) return 2;
  auto log = DurableLog::open(arguments[1], {.capacity_bytes = 0, .segment_bytes = 1U << 20});
  if (!log) {
    std::fprintf(stderr, "%s\n", log.status().message().c_str());
    return 1;
  }
  for (int at = 2; at + 2 < count; at += 3) {
    if (!log_write(**log, arguments[at], std::strtoull(arguments[at + 1], nullptr, 10),
                   arguments[at + 2])) {
      return 1;
    }
  }
  // The machine dies: nothing is closed.
  ::_exit(0);
}
