// SPDX-License-Identifier: Apache-2.0
// Keeps what it has read of a file as a region, after another change of the file within the same
// tick of the clock that files are stamped with. Ends with 1 and a line when the region is served
// for what the file has now, and with 0 also where there is no Cairn.
#include "cairn/region_calls.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr std::size_t kBytes = 65536;
// Longer than times of two changes may be the same.
constexpr unsigned kSettledMicroseconds = 100'000;

void must(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::exit(2);
}

void change(char letter) {
  const std::string bytes(kBytes, letter);
  const int fd = open("data", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  must(fd >= 0 && pwrite(fd, bytes.data(), kBytes, 0) == static_cast<ssize_t>(kBytes), "write");
  close(fd);
}

std::string read_file(int fd) {
  std::string bytes(kBytes, '?');
  must(pread(fd, bytes.data(), kBytes, 0) == static_cast<ssize_t>(kBytes), "read");
  return bytes;
}

template <typename Pointer>
Pointer find(const char* name) {
  return reinterpret_cast<Pointer>(dlsym(RTLD_DEFAULT, name));
}

bool is_same(const CairnFileVersion& left, const CairnFileVersion& right) {
  return left.size == right.size && left.mtime_ns == right.mtime_ns &&
         left.ctime_ns == right.ctime_ns && left.cut_writes == right.cut_writes;
}

// Returns whether both changes were in one tick; `is_wrong`: and the region was served.
bool try_once(std::uint64_t name, bool* is_wrong) {
  auto* const version = find<decltype(&cairn_region_version)>("cairn_region_version");
  auto* const keep = find<decltype(&cairn_region_keep)>("cairn_region_keep");
  auto* const read = find<decltype(&cairn_region_read)>("cairn_region_read");
  change('A');
  const int fd = open("data", O_RDONLY | O_CLOEXEC);
  CairnFileVersion before{};
  must(version(fd, &before) == 0, "version");
  std::string bytes = read_file(fd);
  change('B');
  CairnFileVersion after{};
  must(version(fd, &after) == 0, "version");
  const bool is_one_tick = is_same(before, after);
  if (is_one_tick) {
    usleep(kSettledMicroseconds);
    const CairnRegion kept{fd, 0, {name, 1}, kBytes, before};
    (void)keep(&kept, bytes.data());
    CairnRegion wanted = kept;
    wanted.version = after;
    const CairnRegionPart all{0, kBytes, bytes.data()};
    *is_wrong = read(&wanted, &all, 1) == 0 && bytes != read_file(fd);
  }
  close(fd);
  return is_one_tick;
}

}  // namespace

int main() {
  if (dlsym(RTLD_DEFAULT, "cairn_region_version") == nullptr) return 0;
  bool is_wrong = false;
  std::uint64_t name = 0;
  while (name < 1000 && !try_once(name, &is_wrong)) ++name;
  must(name < 1000, "no two changes in one tick");
  if (is_wrong) std::puts("the region has what the file had before its last change");
  return is_wrong ? 1 : 0;
}
