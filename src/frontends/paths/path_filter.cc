// SPDX-License-Identifier: Apache-2.0
#include "frontends/paths/path_filter.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <sys/stat.h>

#include <atomic>
#include <cstring>

#include "base/check.h"
#include "base/descriptor_path.h"
#include "base/descriptor_shortage.h"
#include "base/system_call.h"

namespace cairn {
namespace {

constexpr unsigned kDirectoriesMax = 16;
constexpr unsigned kExcludesMax = 64;
constexpr std::size_t kTextMax = 16 * 1024;

struct Directory {
  const char* path;
  std::size_t length;
  std::uint64_t mount;
};

// The text comes last: a start then touches one page of it all.
struct Filter {
  bool takes_everything;
  std::size_t used;
  Directory directories[kDirectoriesMax];
  unsigned directory_count;
  const char* excludes[kExcludesMax];
  unsigned exclude_count;
  const char* wanted[kDirectoriesMax];  // as configured
  unsigned wanted_count;
  std::atomic<std::uint32_t> state;  // 0 to resolve, 1 being resolved, 2 resolved
  char text[kTextMax];
};
constinit Filter filter{};
static_assert(kTextMax >= 2 * PATH_MAX, "a directory as configured, and where it really is");

// Keeps a copy for the life of the process; null when there is no room.
const char* keep(const char* text, std::size_t length) {
  if (filter.used + length + 1 > kTextMax) return nullptr;
  char* copy = filter.text + filter.used;
  std::memcpy(copy, text, length);
  copy[length] = '\0';
  filter.used += length + 1;
  CAIRN_DCHECK(filter.used <= kTextMax);
  return copy;
}

unsigned split(const char* list, const char** items, unsigned items_max) {
  unsigned count = 0;
  while (list != nullptr && *list != '\0' && count < items_max) {
    const char* end = std::strchr(list, ':');
    const std::size_t length =
        end != nullptr ? static_cast<std::size_t>(end - list) : std::strlen(list);
    if (length > 0) {
      const char* copy = keep(list, length);
      if (copy != nullptr) items[count++] = copy;
    }
    list = end != nullptr ? end + 1 : nullptr;
  }
  return count;
}

long path_of(int fd, char* path, std::size_t size) {
  const long length = sys::readlinkat(AT_FDCWD, DescriptorPath(fd).text, path, size - 1);
  if (length >= 0) path[length] = '\0';
  return length;
}

// The mount of the directory at the path, or of the open one where the path is empty.
std::uint64_t mount_of(int fd, const char* path) {
  struct ::statx status;
  if (sys::statx(fd, path, AT_EMPTY_PATH, STATX_MNT_ID, &status) < 0) return 0;
  return (status.stx_mask & STATX_MNT_ID) != 0 ? status.stx_mnt_id : 0;
}

void add_directory(const char* path, std::size_t length, std::uint64_t mount) {
  const char* copy = keep(path, length);
  if (copy == nullptr) return;
  // The root directory is the one whose path ends with a slash.
  const std::size_t used = length == 1 ? 0 : length;
  CAIRN_DCHECK(filter.directory_count < filter.wanted_count);
  filter.directories[filter.directory_count++] = Directory{copy, used, mount};
}

void resolve_one(const char* wanted) {
  const int fd = sys::openat(AT_FDCWD, wanted, O_PATH | O_DIRECTORY | O_CLOEXEC);
  // A process without a descriptor for it takes it as configured: `cairn run` gives its true path.
  if (is_short_of_descriptors(-fd))
    add_directory(wanted, std::strlen(wanted), mount_of(AT_FDCWD, wanted));
  if (fd < 0) return;
  char path[PATH_MAX];
  const long length = path_of(fd, path, sizeof path);
  if (length > 0) add_directory(path, static_cast<std::size_t>(length), mount_of(fd, ""));
  sys::close(fd);
}

// The part of the path below the directory, null when it is not there.
const char* part_below(const Directory& directory, const char* path) {
  if (std::strncmp(path, directory.path, directory.length) != 0) return nullptr;
  return path[directory.length] == '/' ? path + directory.length + 1 : nullptr;
}

// The part of the path below the first managed directory that it lies in, null when there is none.
const char* part_below_any(const char* path) {
  for (unsigned index = 0; index < filter.directory_count; ++index) {
    if (const char* below = part_below(filter.directories[index], path)) return below;
  }
  return filter.takes_everything ? path + 1 : nullptr;
}

bool is_excluded(const char* path, const char* below) {
  for (unsigned index = 0; index < filter.exclude_count; ++index) {
    const char* pattern = filter.excludes[index];
    if (fnmatch(pattern, path, 0) == 0 || fnmatch(pattern, below, 0) == 0) return true;
    if (std::strchr(pattern, '/') != nullptr) continue;
    const char* last = std::strrchr(path, '/');
    if (last != nullptr && fnmatch(pattern, last + 1, 0) == 0) return true;
  }
  return false;
}

}  // namespace

void PathFilter::configure(const char* directories, const char* excludes) {
  filter.takes_everything = false;
  filter.used = 0;
  filter.directory_count = 0;
  filter.wanted_count = split(directories, filter.wanted, kDirectoriesMax);
  filter.exclude_count = split(excludes, filter.excludes, kExcludesMax);
  filter.state.store(0, std::memory_order_release);
}

void PathFilter::manage_everything() { filter.takes_everything = true; }

void PathFilter::resolve() {
  if (filter.state.load(std::memory_order_acquire) == 2) return;
  std::uint32_t expected = 0;
  if (!filter.state.compare_exchange_strong(expected, 1)) {
    while (filter.state.load(std::memory_order_acquire) == 1) sys::call(SYS_sched_yield);
    return;
  }
  for (unsigned index = 0; index < filter.wanted_count; ++index) resolve_one(filter.wanted[index]);
  CAIRN_DCHECK(filter.state.load(std::memory_order_relaxed) == 1);
  filter.state.store(2, std::memory_order_release);
}

bool PathFilter::may_manage_mount(std::uint64_t mount) {
  if (filter.takes_everything) return true;
  for (unsigned index = 0; index < filter.directory_count; ++index) {
    // Kernels before 5.8 do not tell mounts apart: then the path decides alone.
    if (filter.directories[index].mount == mount || filter.directories[index].mount == 0)
      return true;
  }
  return false;
}

bool PathFilter::manages(int fd) {
  char path[PATH_MAX];
  const long length = path_of(fd, path, sizeof path);
  return length > 0 && path[0] == '/' && manages_path(path);
}

bool PathFilter::may_manage_in(int directory) {
  char path[PATH_MAX];
  const long length = path_of(directory, path, sizeof path - 1);
  if (length <= 0 || path[0] != '/') return false;
  // As a file in it would be judged.
  path[length] = '/';
  path[length + 1] = '\0';
  return part_below_any(path) != nullptr;
}

bool PathFilter::manages_path(const char* path) {
  for (unsigned index = 0; index < filter.directory_count; ++index) {
    const char* below = part_below(filter.directories[index], path);
    if (below != nullptr && !is_excluded(path, below)) return true;
  }
  return filter.takes_everything && !is_excluded(path, path + 1);
}

const char* PathFilter::place_of(int fd, char* path, std::size_t size) {
  if (path_of(fd, path, size) <= 0 || path[0] != '/') return nullptr;
  return part_below_any(path);
}

}  // namespace cairn
