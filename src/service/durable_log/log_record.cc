// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/log_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "base/fnv1a.h"

namespace cairn::durable {

std::uint64_t boot_mark() {
  const int fd = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::array<char, 64> text{};
  const ssize_t got = ::read(fd, text.data(), text.size());
  ::close(fd);
  return got <= 0 ? 0 : fnv1a({text.data(), static_cast<std::size_t>(got)});
}

}  // namespace cairn::durable
