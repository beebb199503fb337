// SPDX-License-Identifier: Apache-2.0
// Every call that takes an address, with every kind of address that is not good: the result, the
// offset and the bytes of the file must be the kernel's, and afterwards the file and the thread's
// signals must be as free as before.
#include <aio.h>
#include <errno.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bad_addresses.h"
#include "scene.h"

using namespace scene;

namespace {

volatile std::size_t everything = SIZE_MAX;  // where no compiler sees it

template <std::size_t kLength>
ssize_t read_some(int fd, char* address) {
  return read(fd, address, kLength);
}
template <std::size_t kLength>
ssize_t write_some(int fd, char* address) {
  return write(fd, address, kLength);
}

// A vector of good memory and the bad.
struct Parts {
  explicit Parts(char* bad)
      : parts{{good, sizeof good}, {nullptr, 0}, {bad, 9000}, {good, sizeof good}} {}
  char good[300] = "good";
  iovec parts[4];
};

// Memory that is mapped during the call may come to lie where the program has none.
ssize_t append_around_a_hole(int fd) {
  constexpr std::size_t kBytes = 6 * kPage;
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  char* const bytes = static_cast<char*>(memory);
  memset(bytes, 'm', kBytes);
  munmap(bytes + 2 * kPage, 2 * kPage);
  const iovec parts[2] = {{bytes, 3000}, {bytes + 2 * kPage - 100, 3000}};
  const ssize_t put = pwritev2(fd, parts, 2, 0, RWF_APPEND);
  munmap(bytes, kBytes);
  return put;
}

const std::vector<Call> kReads = {
    {"read of 1", read_some<1>},
    {"read of 64", read_some<64>},
    {"read of 100", read_some<100>},
    {"read of 9000", read_some<9000>},
    {"read of 80000", read_some<80'000>},
    {"read of 100000", read_some<100'000>},
    {"read of nothing", read_some<0>},
    {"read of half of all addresses", read_some<SIZE_MAX / 2>},
    {"read of all addresses", [](int fd, char* at) { return read(fd, at, everything); }},
    {"pread", [](int fd, char* at) { return pread(fd, at, 9000, 777); }},
    {"pread of a few", [](int fd, char* at) { return pread(fd, at, 60, 777); }},
    {"pread at the end", [](int fd, char* at) { return pread(fd, at, 60, kFileBytes); }},
    {"pread over the end", [](int fd, char* at) { return pread(fd, at, 900, kFileBytes - 30); }},
    {"readv", [](int fd, char* at) { return readv(fd, Parts(at).parts, 4); }},
    {"preadv", [](int fd, char* at) { return preadv(fd, Parts(at).parts, 4, 5); }},
    {"preadv2", [](int fd, char* at) { return preadv2(fd, Parts(at).parts, 4, -1, 0); }},
    {"readv of a bad vector",
     [](int fd, char* at) { return readv(fd, reinterpret_cast<iovec*>(at), 2); }},
    {"preadv2 of a bad vector",
     [](int fd, char* at) { return preadv2(fd, reinterpret_cast<iovec*>(at), 500, 3, 0); }},
    {"syscall read", [](int fd, char* at) { return ssize_t{syscall(SYS_read, fd, at, 500)}; }},
    {"syscall pread64",
     [](int fd, char* at) { return ssize_t{syscall(SYS_pread64, fd, at, 500, 9)}; }},
    {"syscall readv", [](int fd, char* at) { return ssize_t{syscall(SYS_readv, fd, at, 3)}; }},
};

const std::vector<Call> kWrites = {
    {"write of 1", write_some<1>},
    {"write of 64", write_some<64>},
    {"write of 100", write_some<100>},
    {"write of 9000", write_some<9000>},
    {"write of 80000", write_some<80'000>},
    {"write of 100000", write_some<100'000>},
    {"write of nothing", write_some<0>},
    {"write of all addresses", [](int fd, char* at) { return write(fd, at, everything); }},
    {"pwrite", [](int fd, char* at) { return pwrite(fd, at, 9000, 777); }},
    {"pwrite over the end", [](int fd, char* at) { return pwrite(fd, at, 9000, kFileBytes - 30); }},
    {"pwrite of a block", [](int fd, char* at) { return pwrite(fd, at, 65536, 65536); }},
    // Behind the end some file systems grow the file although they say EFAULT.
    {"pwrite at the end", [](int fd, char* at) { return pwrite(fd, at, 9000, kFileBytes); }},
    {"writev", [](int fd, char* at) { return writev(fd, Parts(at).parts, 4); }},
    {"pwritev", [](int fd, char* at) { return pwritev(fd, Parts(at).parts, 4, 5); }},
    {"pwritev2", [](int fd, char* at) { return pwritev2(fd, Parts(at).parts, 4, -1, 0); }},
    {"appending pwritev2",
     [](int fd, char* at) { return pwritev2(fd, Parts(at).parts, 4, 0, RWF_APPEND); }},
    {"append of parts around a hole", [](int fd, char*) { return append_around_a_hole(fd); }},
    {"writev of a bad vector",
     [](int fd, char* at) { return writev(fd, reinterpret_cast<iovec*>(at), 3); }},
    {"syscall write", [](int fd, char* at) { return ssize_t{syscall(SYS_write, fd, at, 500)}; }},
    {"syscall pwrite64",
     [](int fd, char* at) { return ssize_t{syscall(SYS_pwrite64, fd, at, 500, 9)}; }},
    {"syscall writev", [](int fd, char* at) { return ssize_t{syscall(SYS_writev, fd, at, 3)}; }},
};

template <typename T>
T* at_place(char* address) {
  return reinterpret_cast<T*>(address);
}

// Calls that put something there.
const std::vector<Call> kResults = {
    {"fstat", [](int fd, char* at) { return ssize_t{fstat(fd, at_place<struct stat>(at))}; }},
    {"stat", [](int, char* at) { return ssize_t{stat("f", at_place<struct stat>(at))}; }},
    {"stat of nothing",
     [](int, char* at) { return ssize_t{stat("none", at_place<struct stat>(at))}; }},
    {"lstat", [](int, char* at) { return ssize_t{lstat("f", at_place<struct stat>(at))}; }},
    {"fstatat",
     [](int fd, char* at) {
       return ssize_t{fstatat(fd, "", at_place<struct stat>(at), AT_EMPTY_PATH)};
     }},
    {"statx",
     [](int, char* at) {
       return ssize_t{statx(AT_FDCWD, "f", 0, STATX_BASIC_STATS, at_place<struct statx>(at))};
     }},
    {"syscall fstat", [](int fd, char* at) { return ssize_t{syscall(SYS_fstat, fd, at)}; }},
    {"FIONREAD", [](int fd, char* at) { return ssize_t{ioctl(fd, FIONREAD, at)}; }},
    {"FIGETBSZ", [](int fd, char* at) { return ssize_t{ioctl(fd, FIGETBSZ, at)}; }},
    {"FS_IOC_GETFLAGS",
     [](int fd, char* at) { return ioctl(fd, FS_IOC_GETFLAGS, at) == 0 ? 0 : ssize_t{-1}; }},
    {"F_GET_RW_HINT", [](int fd, char* at) { return ssize_t{fcntl(fd, F_GET_RW_HINT, at)}; }},
    {"fgetxattr", [](int fd, char* at) { return fgetxattr(fd, "user.none", at, 100); }},
    {"flistxattr", [](int fd, char* at) { return flistxattr(fd, at, 100); }},
    {"aio_read",
     [](int fd, char* at) {
       aiocb request{};
       request.aio_fildes = fd;
       request.aio_buf = at;
       request.aio_nbytes = 9000;
       const aiocb* list[] = {&request};
       if (aio_read(&request) != 0) return ssize_t{-2};
       while (aio_error(&request) == EINPROGRESS) aio_suspend(list, 1, nullptr);
       errno = aio_error(&request);
       return aio_return(&request);
     }},
};

pollfd* entries_at(char* address) { return at_place<pollfd>(address); }
fd_set* set_at(char* address) { return at_place<fd_set>(address); }
constexpr timespec kSoon{0, 1000};

int pipe_end(int end) {
  static int ends[2] = {-1, -1};
  if (ends[0] < 0 && pipe2(ends, O_NONBLOCK) != 0) abort();
  char rest[kPage];
  while (read(ends[0], rest, sizeof rest) > 0) {
  }
  return ends[end];
}
int other_file() {
  static int fd = open_file("other", O_RDWR | O_CREAT);
  if (ftruncate(fd, 100) != 0) abort();
  return fd;
}

// Calls that look at something there first.
const std::vector<Call> kArguments = {
    {"F_GETLK", [](int fd, char* at) { return ssize_t{fcntl(fd, F_GETLK, at)}; }},
    {"F_SETLK", [](int fd, char* at) { return ssize_t{fcntl(fd, F_SETLK, at)}; }},
    {"F_OFD_GETLK", [](int fd, char* at) { return ssize_t{fcntl(fd, F_OFD_GETLK, at)}; }},
    {"F_OFD_SETLK", [](int fd, char* at) { return ssize_t{fcntl(fd, F_OFD_SETLK, at)}; }},
    {"F_SET_RW_HINT", [](int fd, char* at) { return ssize_t{fcntl(fd, F_SET_RW_HINT, at)}; }},
    {"poll of 1", [](int, char* at) { return ssize_t{poll(entries_at(at), 1, 0)}; }},
    {"poll of 100", [](int, char* at) { return ssize_t{poll(entries_at(at), 100, 0)}; }},
    {"ppoll", [](int, char* at) { return ssize_t{ppoll(entries_at(at), 9, &kSoon, nullptr)}; }},
    {"select of reads",
     [](int fd, char* at) {
       timeval none{0, 0};
       return ssize_t{select(fd + 1, set_at(at), nullptr, nullptr, &none)};
     }},
    {"select of writes",
     [](int, char* at) {
       timeval none{0, 0};
       return ssize_t{select(60, nullptr, set_at(at), nullptr, &none)};
     }},
    {"pselect",
     [](int fd, char* at) {
       return ssize_t{pselect(fd + 1, nullptr, nullptr, set_at(at), &kSoon, nullptr)};
     }},
    {"epoll_ctl",
     [](int fd, char* at) {
       static int poller = epoll_create1(0);
       return ssize_t{epoll_ctl(poller, EPOLL_CTL_ADD, fd, at_place<epoll_event>(at))};
     }},
    {"sendfile",
     [](int fd, char* at) { return sendfile(other_file(), fd, at_place<off_t>(at), 100); }},
    {"copy_file_range from",
     [](int fd, char* at) {
       return copy_file_range(fd, at_place<off_t>(at), other_file(), nullptr, 100, 0);
     }},
    {"copy_file_range to",
     [](int fd, char* at) {
       return copy_file_range(other_file(), nullptr, fd, at_place<off_t>(at), 100, 0);
     }},
    {"splice from",
     [](int fd, char* at) {
       return splice(fd, at_place<off_t>(at), pipe_end(1), nullptr, 100, SPLICE_F_NONBLOCK);
     }},
    {"futimens", [](int fd, char* at) { return ssize_t{futimens(fd, at_place<timespec>(at))}; }},
    {"utimensat",
     [](int, char* at) { return ssize_t{utimensat(AT_FDCWD, "f", at_place<timespec>(at), 0)}; }},
    {"fsetxattr", [](int fd, char* at) { return ssize_t{fsetxattr(fd, "user.x", at, 64, 0)}; }},
    {"openat2",
     [](int, char* at) {
       const long fd = syscall(SYS_openat2, AT_FDCWD, "f", at, sizeof(open_how));
       if (fd >= 0) close(static_cast<int>(fd));
       return ssize_t{fd >= 0 ? 0 : fd};
     }},
};

// A few of the addresses hold letters, which are names of nothing.
const std::vector<Call> kNames = {
    {"open", [](int, char* at) { return ssize_t{open(at, O_RDONLY)}; }},
    {"openat", [](int, char* at) { return ssize_t{openat(AT_FDCWD, at, O_RDWR)}; }},
    {"stat",
     [](int, char* at) {
       struct stat status;
       return ssize_t{stat(at, &status)};
     }},
    {"unlink", [](int, char* at) { return ssize_t{unlink(at)}; }},
    {"rename from", [](int, char* at) { return ssize_t{rename(at, "new")}; }},
    {"rename to", [](int, char* at) { return ssize_t{rename("none", at)}; }},
    {"link", [](int, char* at) { return ssize_t{link("none", at)}; }},
    {"truncate", [](int, char* at) { return ssize_t{truncate(at, 0)}; }},
    {"chmod", [](int, char* at) { return ssize_t{chmod(at, 0600)}; }},
    {"utimensat", [](int, char* at) { return ssize_t{utimensat(AT_FDCWD, at, nullptr, 0)}; }},
    {"utimensat of a descriptor",
     [](int fd, char* at) { return ssize_t{utimensat(fd, at, nullptr, AT_EMPTY_PATH)}; }},
    {"fgetxattr",
     [](int fd, char* at) {
       char value[9];
       return fgetxattr(fd, at, value, sizeof value);
     }},
};

// In a child: what exec says, or what the program's end was.
template <typename Start>
ssize_t child_of(Start&& start) {
  const pid_t child = fork();
  if (child == 0) {
    start();
    _exit(errno);
  }
  int status = 0;
  waitpid(child, &status, 0);
  errno = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  return errno == 0 ? status : -1;
}

const std::vector<Call> kPrograms = {
    {"execve of", [](int, char* at) { return child_of([=] { execve(at, environ, environ); }); }},
    {"execve with",
     [](int, char* at) {
       return child_of([=] { execve("/bin/true", environ, at_place<char*>(at)); });
     }},
    {"posix_spawn",
     [](int, char* at) {
       char name[] = "true";
       char* arguments[] = {name, nullptr};
       pid_t child = 0;
       errno = posix_spawn(&child, "/bin/true", nullptr, nullptr, arguments, at_place<char*>(at));
       if (errno != 0) return ssize_t{-1};
       int status = 0;
       waitpid(child, &status, 0);
       return ssize_t{status};
     }},
};

template <typename T>
T* read_only(const T& value) {
  char* page = map_pages(1, PROT_READ | PROT_WRITE);
  memcpy(page, &value, sizeof value);
  mprotect(page, kPage, PROT_READ);
  return reinterpret_cast<T*>(page);
}

void try_read_only() {
  note_signals();
  const int fd = file_in(State::kResident, O_RDWR);
  struct flock range{};
  range.l_type = F_WRLCK;
  say("F_GETLK", fcntl(fd, F_GETLK, read_only(range)));
  say("F_SETLK", fcntl(fd, F_SETLK, read_only(range)));
  pollfd entries[] = {{fd, POLLIN, 0}, {-1, POLLIN, 0}};
  say("poll", poll(*read_only(entries), 2, 0));
  fd_set set;
  FD_ZERO(&set);
  FD_SET(fd, &set);
  timeval none{0, 0};
  say("select", select(fd + 1, read_only(set), nullptr, nullptr, &none));
  say("select", select(fd + 1, &set, read_only(set), nullptr, &none));
  off_t* offset = read_only(off_t{70});
  say("sendfile", sendfile(other_file(), fd, offset, 30));
  say("where it went", lseek(other_file(), 0, SEEK_CUR));
  say("copy_file_range", copy_file_range(fd, offset, other_file(), nullptr, 30, 0));
  say("where it went", lseek(other_file(), 0, SEEK_CUR));
  say("copy_file_range", copy_file_range(other_file(), nullptr, fd, offset, 10, 0));
  say("splice", splice(fd, offset, pipe_end(1), nullptr, 30, 0));
  say("utimensat", futimens(fd, read_only(std::array<timespec, 2>{})->data()));
  std::printf("bytes %08x, %s\n", checksum_of_file(), state_of_thread(fd));
}

}  // namespace

SCENE(reads_of_resident_bytes) { try_all(kReads, State::kResident); }
SCENE(reads_of_missing_bytes) { try_all(kReads, State::kMissing, O_RDONLY); }
SCENE(reads_of_mapped_files) { try_all(kReads, State::kMapped); }
SCENE(writes_of_resident_bytes) { try_all(kWrites, State::kResident); }
SCENE(writes_of_missing_bytes) { try_all(kWrites, State::kMissing); }
SCENE(writes_of_mapped_files) { try_all(kWrites, State::kMapped); }
SCENE(writes_into_holes) { try_all(kWrites, State::kHollow); }
SCENE(writes_that_append) { try_all(kWrites, State::kResident, O_RDWR | O_APPEND); }
SCENE(results_to_bad_addresses) { try_all(kResults, State::kResident); }
SCENE(arguments_at_bad_addresses) { try_all(kArguments, State::kResident, O_RDWR, Fill::kZeros); }
SCENE(names_at_bad_addresses) { try_all(kNames, State::kResident); }
SCENE(programs_with_bad_addresses) { try_all(kPrograms, State::kResident, O_RDWR, Fill::kZeros); }
SCENE(results_that_cannot_be_written) { try_read_only(); }
SCENE(synchronous_writes) { try_all(kWrites, State::kResident, O_RDWR | O_DSYNC); }
