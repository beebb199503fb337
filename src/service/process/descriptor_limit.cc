// SPDX-License-Identifier: Apache-2.0
#include "service/process/descriptor_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/check.h"

namespace cairn::node {
namespace {

std::uint64_t system_limit() {
  std::uint64_t value = 1024 * 1024;
  if (std::FILE* file = std::fopen("/proc/sys/fs/nr_open", "re")) {
    unsigned long long read = 0;
    if (std::fscanf(file, "%llu", &read) == 1) value = read;
    std::fclose(file);
  }
  return value;
}

}  // namespace

std::uint64_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  rlimit wanted = limit;
  if (::geteuid() == 0) wanted.rlim_max = std::max<rlim_t>(limit.rlim_max, system_limit() / 2);
  wanted.rlim_cur = wanted.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &wanted) != 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ::getrlimit(RLIMIT_NOFILE, &limit);
  CAIRN_CHECK(limit.rlim_cur <= limit.rlim_max);
  return limit.rlim_cur;
}

}  // namespace cairn::node
