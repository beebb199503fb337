// SPDX-License-Identifier: Apache-2.0
// System calls by their numbers: those for which libc has no function, or one that does something
// else first.
#include <dirent.h>
#include <errno.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

#include "scene.h"

using namespace scene;

namespace {

// Newer than the headers.
constexpr long kCacheStat = 451;
constexpr long kChangeModeAt2 = 452;
constexpr long kSetAttributeAt = 463;
constexpr long kGetAttributeAt = 464;
constexpr long kListAttributesAt = 465;
constexpr long kRemoveAttributeAt = 466;
constexpr long kFileGetAttributes = 468;

struct AttributeArguments {
  std::uint64_t value;
  std::uint32_t size;
  std::uint32_t flags;
};

void say_mtime(const char* what, int fd) {
  struct stat status;
  fstat(fd, &status);
  say(what, status.st_mtim.tv_sec);
}

void say_mode(int fd) {
  struct stat status;
  fstat(fd, &status);
  say("mode", status.st_mode);
}

}  // namespace

SCENE(advice) {
  const int fd = make_file("f", "0123456789");
  const int writer = open_file("f", O_WRONLY);
  say("fadvise64", syscall(SYS_fadvise64, fd, 0L, 0L, POSIX_FADV_WILLNEED));
  say("no advice", syscall(SYS_fadvise64, fd, 0L, 0L, 99));
  say("negative length", syscall(SYS_fadvise64, fd, 0L, -1L, POSIX_FADV_NORMAL));
  say("readahead", syscall(SYS_readahead, fd, 0L, 10L));
  say("readahead of a writer", syscall(SYS_readahead, writer, 0L, 10L));
  const std::uint64_t range[2] = {0, 0};
  std::uint64_t counts[5] = {};
  say("cachestat", syscall(kCacheStat, fd, range, counts, 0));
  say("cachestat with flags", syscall(kCacheStat, fd, range, counts, 1));
  say("cachestat of none", syscall(kCacheStat, 999, range, counts, 0));
}

SCENE(times) {
  const int fd = make_file("f", "0123456789");
  const timespec set[2] = {{1'000'000, 5}, {2'000'000, 7}};
  say("utimensat", syscall(SYS_utimensat, fd, nullptr, set, 0));
  say_mtime("mtime", fd);
  say("with flags", syscall(SYS_utimensat, fd, nullptr, set, AT_SYMLINK_NOFOLLOW));
  say("of no file", syscall(SYS_utimensat, AT_FDCWD, nullptr, set, 0));
  say("empty path", syscall(SYS_utimensat, fd, "", set, AT_EMPTY_PATH));
  const timeval older[2] = {{3'000'000, 0}, {4'000'000, 0}};
  say("futimesat", syscall(SYS_futimesat, fd, nullptr, older));
  say_mtime("mtime", fd);
  say("utimes", syscall(SYS_utimes, "f", older));
  say("write", write(fd, "ab", 2));
  const timeval oldest[2] = {{5'000'000, 0}, {6'000'000, 0}};
  say("futimesat", syscall(SYS_futimesat, AT_FDCWD, "f", oldest));
  say_mtime("mtime", fd);
}

SCENE(waiting) {
  const int fd = make_file("f", "0123456789");
  int ends[2];
  say("pipe", pipe(ends));
  pollfd entries[2] = {{fd, POLLIN | POLLOUT, 0}, {ends[0], POLLIN, 0}};
  timespec soon{0, 1000};
  say("ppoll", syscall(SYS_ppoll, entries, 2, &soon, nullptr, 0));
  say("events", entries[0].revents);
  say("of the pipe", entries[1].revents);
  fd_set reads;
  FD_ZERO(&reads);
  FD_SET(fd, &reads);
  FD_SET(ends[0], &reads);
  say("pselect6", syscall(SYS_pselect6, fd + 3, &reads, nullptr, nullptr, &soon, nullptr));
  say("the file is ready", FD_ISSET(fd, &reads));
  say("the pipe is not", FD_ISSET(ends[0], &reads));
  timeval none{0, 0};
  say("select", syscall(SYS_select, fd + 1, &reads, nullptr, nullptr, &none));
}

SCENE(refused_for_files) {
  const int fd = make_file("f", "0123456789");
  int ends[2];
  say("pipe", pipe(ends));
  say("write", write(ends[1], "abc", 3));
  say("tee to a file", syscall(SYS_tee, ends[0], fd, 3L, 0));
  say("tee of a file", syscall(SYS_tee, fd, ends[1], 3L, 0));
  say("tee of nothing", syscall(SYS_tee, fd, ends[1], 0L, 0));
  say("tee with flags", syscall(SYS_tee, fd, ends[1], 3L, 1 << 20));
  say("tee of none", syscall(SYS_tee, 999, fd, 3L, 0));
  say("libc's tee", tee(ends[0], fd, 3, 0));
  char entries[256];
  say("getdents64", syscall(SYS_getdents64, fd, entries, sizeof entries));
  say("getdents", syscall(SYS_getdents, fd, entries, sizeof entries));
  say("libc's getdents64", getdents64(fd, entries, sizeof entries));
  say("fchdir", syscall(SYS_fchdir, fd));
}

SCENE(opening_by_rules) {
  close(make_file("f", "0123456789"));
  struct {
    open_how known;
    std::uint64_t later[4];
  } rules{};
  rules.known.flags = O_RDWR;
  const auto fd = static_cast<int>(syscall(SYS_openat2, AT_FDCWD, "f", &rules, sizeof rules));
  say("longer rules", fd >= 0);
  say("write", write(fd, "ab", 2));
  say_file("f");
  rules.known.flags = O_RDWR | O_TRUNC;
  const auto cut = static_cast<int>(syscall(SYS_openat2, AT_FDCWD, "f", &rules, sizeof rules));
  say("cut", lseek(cut, 0, SEEK_END));
  say("write again", write(cut, "abcdef", 6));
  rules.known.flags = O_RDONLY | O_TRUNC;
  const auto cut_for_reading =
      static_cast<int>(syscall(SYS_openat2, AT_FDCWD, "f", &rules, sizeof rules));
  say("cut by an open for reading", lseek(cut_for_reading, 0, SEEK_END));
  say("as the others see it", lseek(cut, 0, SEEK_END));
  rules.later[1] = 1;
  say("what nobody knows", syscall(SYS_openat2, AT_FDCWD, "f", &rules, sizeof rules));
  say("too short", syscall(SYS_openat2, AT_FDCWD, "f", &rules, 8L));
  say_file("f");
}

SCENE(handles) {
  const int fd = make_file("f", "0123456789");
  say("write", write(fd, "ab", 2));
  alignas(file_handle) char space[sizeof(file_handle) + MAX_HANDLE_SZ] = {};
  auto* handle = reinterpret_cast<file_handle*>(space);
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  say("name_to_handle_at", syscall(SYS_name_to_handle_at, AT_FDCWD, "f", handle, &mount, 0));
  const int here = open(".", O_RDONLY | O_DIRECTORY);
  const auto again = static_cast<int>(syscall(SYS_open_by_handle_at, here, handle, O_RDWR));
  char back[16] = {};
  say("read", read(again, back, sizeof back));
  say_bytes("back", back, 10);
  say("write", pwrite(again, "XY", 2, 4));
  const int third = open_by_handle_at(here, handle, O_RDONLY);
  say("read", read(third, back, sizeof back));
  say_bytes("back", back, 10);
  const auto cut = static_cast<int>(syscall(SYS_open_by_handle_at, here, handle, O_RDWR | O_TRUNC));
  say("cut", lseek(cut, 0, SEEK_END));
  say("read", pread(fd, back, sizeof back, 0));
  say("write", write(cut, "again", 5));
  say("cut for reading", open_by_handle_at(here, handle, O_RDONLY | O_TRUNC) >= 0);
  say("read", pread(fd, back, sizeof back, 0));
}

SCENE(out_of_a_table) {
  const int fd = make_file("f", "0123456789");
  const auto self = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  const auto twin = static_cast<int>(syscall(SYS_pidfd_getfd, self, fd, 0));
  char back[8] = {};
  say("read", read(twin, back, 4));
  say_bytes("back", back, 4);
  say("position", lseek(fd, 0, SEEK_CUR));
  say("flags", fcntl(twin, F_GETFD));
  say("close", close(fd));
  say("write", write(twin, "twin", 4));
  say("of none", syscall(SYS_pidfd_getfd, self, 999, 0));
  say("close", close(twin));
  say_file("f");
}

SCENE(attributes) {
  const int fd = make_file("f", "0123456789");
  say("write", write(fd, "ab", 2));
  say("fchmodat2", syscall(kChangeModeAt2, fd, "", 0600, AT_EMPTY_PATH));
  say_mode(fd);
  say("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, "f", 0640));
  say_mode(fd);
  say("chmod", syscall(SYS_chmod, "f", 0604));
  say("fchownat", syscall(SYS_fchownat, fd, "", getuid(), getgid(), AT_EMPTY_PATH));
  AttributeArguments value{reinterpret_cast<std::uintptr_t>("value"), 5, 0};
  say("setxattrat",
      syscall(kSetAttributeAt, fd, "", AT_EMPTY_PATH, "user.a", &value, sizeof value));
  char back[64] = {};
  value.value = reinterpret_cast<std::uintptr_t>(back);
  value.size = sizeof back;
  say("getxattrat",
      syscall(kGetAttributeAt, fd, "", AT_EMPTY_PATH, "user.a", &value, sizeof value));
  say_text("value", back);
  say("listxattrat", syscall(kListAttributesAt, fd, "", AT_EMPTY_PATH, back, sizeof back));
  say("removexattrat", syscall(kRemoveAttributeAt, AT_FDCWD, "f", 0, "user.a"));
  say("listxattrat", syscall(kListAttributesAt, fd, "", AT_EMPTY_PATH, back, sizeof back));
  std::uint64_t attributes[3] = {};
  say("file_getattr",
      syscall(kFileGetAttributes, fd, "", attributes, sizeof attributes, AT_EMPTY_PATH));
  say("linkat", syscall(SYS_linkat, AT_FDCWD, "f", AT_FDCWD, "g", 0));
  say("symlinkat", syscall(SYS_symlinkat, "f", AT_FDCWD, "s"));
  say("unlinkat", syscall(SYS_unlinkat, AT_FDCWD, "f", 0));
  say_file("g");
}

SCENE(data_by_number) {
  const auto fd = static_cast<int>(syscall(SYS_open, "f", O_RDWR | O_CREAT, 0644));
  say("write", syscall(SYS_write, fd, "0123456789", 10L));
  say("pwrite64", syscall(SYS_pwrite64, fd, "ab", 2L, 3L));
  char back[16] = {};
  say("pread64", syscall(SYS_pread64, fd, back, 16L, 1L));
  say_bytes("back", back, 9);
  say("lseek", syscall(SYS_lseek, fd, 0L, SEEK_END));
  say("ftruncate", syscall(SYS_ftruncate, fd, 5L));
  const auto path = static_cast<int>(syscall(SYS_open_tree, fd, "", AT_EMPTY_PATH));
  say("open_tree", path >= 0);
  say("read of it", read(path, back, 4));
  say("dup", syscall(SYS_dup, fd) >= 0);
  rlimit limit{8, RLIM_INFINITY};
  signal(SIGXFSZ, SIG_IGN);
  say("setrlimit", syscall(SYS_setrlimit, RLIMIT_FSIZE, &limit));
  say("past the limit", syscall(SYS_pwrite64, fd, "0123456789", 10L, 4L));
  limit.rlim_cur = RLIM_INFINITY;
  say("prlimit64", syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, &limit, nullptr));
  say("no limit", syscall(SYS_pwrite64, fd, "0123456789", 10L, 4L));
  say("a number of no call", syscall(5000L));
  say("io_uring_setup", syscall(SYS_io_uring_setup, 0, nullptr) < 0);
  say_file("f");
}
