// SPDX-License-Identifier: Apache-2.0
// fcntl() and copies between descriptors.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <initializer_list>

#include "scene.h"

using namespace scene;

namespace {

void say_lock(const struct flock& lock) {
  std::printf("type %d whence %d start %lld length %lld process %s\n", lock.l_type, lock.l_whence,
              static_cast<long long>(lock.l_start), static_cast<long long>(lock.l_len),
              lock.l_pid == getpid()    ? "this"
              : lock.l_pid == getppid() ? "parent"
              : lock.l_pid > 0          ? "other"
                                        : "none");
}

struct flock range_of(short type, short whence, off_t start, off_t length) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = whence;
  lock.l_start = start;
  lock.l_len = length;
  return lock;
}

void ask(int fd, int command, struct flock lock) {
  say("asked", fcntl(fd, command, &lock));
  say_lock(lock);
}

void ask_everything(int fd) {
  lseek(fd, 4, SEEK_SET);
  for (const int command : {F_GETLK, F_OFD_GETLK}) {
    for (const short whence : {SEEK_SET, SEEK_CUR, SEEK_END}) {
      ask(fd, command, range_of(F_WRLCK, whence, 0, 3));
      ask(fd, command, range_of(F_RDLCK, whence, 2, 0));
      ask(fd, command, range_of(F_WRLCK, whence, -2, 1));
    }
    ask(fd, command, range_of(F_WRLCK, 7, 0, 3));
    ask(fd, command, range_of(F_UNLCK, SEEK_SET, 0, 3));
    ask(fd, command, range_of(F_WRLCK, SEEK_CUR, 0x7ffffffffffffffe, 3));
    ask(fd, command, range_of(F_WRLCK, SEEK_SET, 5, -3));
  }
}

}  // namespace

SCENE(locks_that_are_asked_for) {
  const int fd = make_file("f", "0123456789");
  ask_everything(fd);
  struct flock held = range_of(F_WRLCK, SEEK_SET, 1, 4);
  say("locked", fcntl(fd, F_SETLK, &held));
  std::fflush(stdout);
  if (fork() == 0) {
    ask_everything(open_file("f"));
    std::fflush(stdout);
    _exit(0);
  }
  wait(nullptr);
  ask_everything(fd);
}

SCENE(owners_and_signals) {
  const int fd = make_file("f", "0123456789");
  say("owner", fcntl(fd, F_SETOWN, getpid()));
  say("is set", fcntl(fd, F_GETOWN) == getpid() ? 1 : 0);
  say("signal", fcntl(fd, F_SETSIG, SIGUSR1));
  say("is set", fcntl(fd, F_GETSIG) == SIGUSR1 ? 1 : 0);
  say("notify", fcntl(fd, F_NOTIFY, DN_MODIFY));
  say("pipe size", fcntl(fd, F_GETPIPE_SZ));
  say("seals", fcntl(fd, F_GET_SEALS));
  std::uint64_t hint = 2;
  say("hint", fcntl(fd, F_SET_RW_HINT, &hint));
  hint = 99;
  say("hint", fcntl(fd, F_GET_RW_HINT, &hint));
  say("is", static_cast<long>(hint));
  constexpr int kQuery = 1027;  // F_DUPFD_QUERY
  say("the same", fcntl(fd, kQuery, dup(fd)));
  say("another", fcntl(fd, kQuery, open_file("f")));
  say("none", fcntl(fd, kQuery, 999));
  say("unknown", fcntl(fd, 4711, 0));
}

SCENE(leases_for_reading) {
  const int writer = make_file("f", "0123456789");
  say("lease", fcntl(writer, F_GETLEASE));
  say("of a writer", fcntl(writer, F_SETLEASE, F_RDLCK));
  say("write", write(writer, "abc", 3));
  const int reader = open_file("f", O_RDONLY);
  say("beside a writer", fcntl(reader, F_SETLEASE, F_RDLCK));
  close(writer);
  say("alone", fcntl(reader, F_SETLEASE, F_RDLCK));
  say("lease", fcntl(reader, F_GETLEASE));
  say("given up", fcntl(reader, F_SETLEASE, F_UNLCK));
  say("not held", fcntl(reader, F_SETLEASE, F_UNLCK));
  say_file("f");
}

// Its owner may write as it likes: nothing of the node's breaks it.
SCENE(a_write_under_a_lease) {
  char three[3] = {};
  const int fd = open_file("f");
  say("lease", fcntl(fd, F_SETLEASE, F_WRLCK));
  say("write", write(fd, "abc", 3));
  say("again", pwrite(fd, "def", 3, 10000));
  say("read", pread(fd, three, 3, 10000));
  say_bytes("which", three, 3);
  say("stored", fsync(fd));
  say("shorter", ftruncate(fd, 10001));
  say("write", pwrite(fd, "ghi", 3, 4096));
  say("lease", fcntl(fd, F_GETLEASE));
  say("given up", fcntl(fd, F_SETLEASE, F_UNLCK));
  say("write", pwrite(fd, "jkl", 3, 0));
  close(fd);
  say_file("f");
}

// It keeps the description alive, and with it the lock.
SCENE(a_mapping_keeps_a_lock) {
  for (const int flags : {O_RDWR, O_RDWR | O_APPEND, O_RDWR | O_DIRECT}) {
    const int fd = open_file("f", flags | O_CREAT);
    say("long enough", ftruncate(fd, 8192));
    say("lock", flock(fd, LOCK_EX | LOCK_NB));
    void* memory = mmap(nullptr, 8192, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    const int other = open_file("f", O_RDWR);
    say("beside the mapping", flock(other, LOCK_EX | LOCK_NB));
    munmap(memory, 8192);
    say("after it", flock(other, LOCK_EX | LOCK_NB));
    close(other);
  }
}

// Flags and lock come after the mapping: the lock still is the mapped description's.
SCENE(a_mapping_keeps_a_lock_that_is_newer) {
  for (const int flags : {O_APPEND, O_DIRECT, O_APPEND | O_DIRECT}) {
    const int fd = open_file("f", O_RDWR | O_CREAT);
    say("long enough", ftruncate(fd, 8192));
    void* memory = mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
    say("flags", fcntl(fd, F_SETFL, flags));
    say("lock", flock(fd, LOCK_SH | LOCK_NB));
    close(fd);
    const int other = open_file("f", O_RDWR);
    say("beside the mapping", flock(other, LOCK_EX | LOCK_NB));
    munmap(memory, 8192);
    say("after it", flock(other, LOCK_EX | LOCK_NB));
    close(other);
  }
}

// Another description of the file that may write would break the lease, or be in its way.
SCENE(leases_for_writing_and_appending) {
  const int fd = open_file("f");
  say("lease", fcntl(fd, F_SETLEASE, F_WRLCK));
  say("append", fcntl(fd, F_SETFL, O_APPEND));
  say("lease", fcntl(fd, F_GETLEASE));
  close(fd);
  const int appending = open_file("g", O_WRONLY | O_CREAT | O_APPEND);
  say("lease", fcntl(appending, F_SETLEASE, F_WRLCK));
  say("lease", fcntl(appending, F_GETLEASE));
}

// By name, most file systems leave a file alone that has the size; ext4 does not.
SCENE(the_size_that_a_file_has) {
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  struct stat status{};
  for (const int bytes : {0, 5000}) {
    const int fd = open_file("f");
    say("written", pwrite(fd, "content", bytes == 0 ? 0 : 7, 0));
    say("grown", ftruncate(fd, bytes));
    say("times", futimens(fd, old));
    say("by name", truncate("f", bytes));
    say("stat", fstat(fd, &status));
    say("is old", status.st_mtime == 1000);
    say("stored", fsync(fd));
    say("times", futimens(fd, old));
    say("by name", truncate("f", bytes));
    say("stat", stat("f", &status));
    say("is old", status.st_mtime == 1000);
    say("by descriptor", ftruncate(fd, bytes));
    say("stat", fstat(fd, &status));
    say("is old", status.st_mtime == 1000);
    say("mode", fchmod(fd, 04711));
    say("by name", truncate("f", bytes));
    say("stat", fstat(fd, &status));
    say("mode", status.st_mode & 07777);
    close(fd);
    unlink("f");
  }
}

void say_size(const char* name) {
  struct stat status{};
  say("stat", stat(name, &status));
  say("size", status.st_size);
}

// Bytes from before the limit are nobody's crime: what the program does not write now is stored
// without it.
SCENE(a_limit_below_the_size) {
  const auto limit_to = [](rlim_t bytes) {
    const rlimit limit{bytes, RLIM_INFINITY};
    say("limit", setrlimit(RLIMIT_FSIZE, &limit));
  };
  char bytes[1000];
  memset(bytes, 'b', sizeof bytes);
  for (const bool is_ignored : {false, true}) {
    signal(SIGXFSZ, is_ignored ? SIG_IGN : SIG_DFL);
    int fd = open_file("f");
    say("written", pwrite(fd, bytes, sizeof bytes, 0));
    limit_to(500);
    say("stored", fsync(fd));
    say("hole", lseek(fd, 0, SEEK_HOLE));
    limit_to(RLIM_INFINITY);
    say("written", pwrite(fd, bytes, sizeof bytes, 1000));
    limit_to(500);
    say("closed", close(fd));
    say_size("f");
    fd = open_file("f");
    limit_to(RLIM_INFINITY);
    say("written", pwrite(fd, bytes, sizeof bytes, 2000));
    limit_to(500);
    say("cut by name", truncate("f", 3000));
    say("cut by name", truncate("f", 2900));
    say("cut", ftruncate(fd, 2500));
    say("mode", fchmod(fd, 04711));
    say("inside", pwrite(fd, "inside", 6, 3));
    say_size("f");
    if (is_ignored) {
      say("across", pwrite(fd, bytes, 11, 490));
      say("behind", pwrite(fd, bytes, 11, 500));
      say("longer", ftruncate(fd, 2501));
      say("longer by name", truncate("f", 2501));
    }
    limit_to(RLIM_INFINITY);
    say("closed", close(fd));
    say_file("f");
    say("gone", unlink("f"));
  }
}

// Programs find out by trying what a device takes.
SCENE(direct_transfers) {
  constexpr std::size_t kFileBytes = 30'000;
  const int maker = open_file("f", O_RDWR | O_CREAT);
  static char content[kFileBytes];
  memset(content, 'x', sizeof content);
  say("written", write(maker, content, sizeof content));
  say("stored", fsync(maker));
  const int fd = open("f", O_RDWR | O_DIRECT);
  if (fd < 0) return say("direct", fd);
  alignas(4096) static char room[65536 + 4096];
  struct Transfer {
    std::size_t address;
    std::size_t length;
    off_t offset;
  };
  for (const Transfer& it : {Transfer{0, 1, 0},
                             {0, 512, 0},
                             {0, 4096, 0},
                             {0, 4096, 1},
                             {0, 4096, 513},
                             {1, 4096, 0},
                             {100, 512, 4096},
                             {0, 511, 4096},
                             {0, 65536, 0},
                             {0, 4096, 28672},
                             {0, 4096, 30000},
                             {0, 100, 30000},
                             {0, 4096, 32768},
                             {0, 100, 40000},
                             {0, 0, 7}}) {
    say("pread", pread(fd, room + it.address, it.length, it.offset));
    const iovec part{room + it.address, it.length};
    say("preadv", preadv(fd, &part, 1, it.offset));
    lseek(fd, it.offset, SEEK_SET);
    say("read", read(fd, room + it.address, it.length));
  }
  // What a direct read leaves behind the end of the file in its buffer is nobody's business.
  memset(room, 'y', sizeof room);
  for (const Transfer& it : {Transfer{0, 1, 0},
                             {0, 4096, 0},
                             {0, 4096, 1},
                             {1, 4096, 0},
                             {0, 700, 4096},
                             {0, 4096, 8192},
                             {0, 0, 7}}) {
    say("pwrite", pwrite(fd, room + it.address, it.length, it.offset));
    const iovec part{room + it.address, it.length};
    say("pwritev", pwritev(fd, &part, 1, it.offset));
    lseek(fd, it.offset, SEEK_SET);
    say("write", write(fd, room + it.address, it.length));
  }
  say("plain", fcntl(fd, F_SETFL, 0));
  say("pread", pread(fd, room, 1, 3));
  say("pwrite", pwrite(fd, "plain", 5, 3));
  say("direct", fcntl(fd, F_SETFL, O_DIRECT));
  say("pread", pread(fd, room, 1, 3));
  say("pwrite", pwrite(fd, "plain", 5, 3));
}

// The kernel runs no program that somebody may write to, but who only reads it is not in the way.
SCENE(a_program_that_is_being_read) {
  const int fd = open_file("program", O_WRONLY | O_CREAT);
  say("mode", fchmod(fd, 0755));
  say("written", write(fd, "#!/bin/sh\necho runs\n", 20));
  close(fd);
  const int source = open_file("/bin/true", O_RDONLY);
  const int binary = open_file("binary", O_WRONLY | O_CREAT);
  say("mode", fchmod(binary, 0755));
  long copied = 0;
  while ((copied = sendfile(binary, source, nullptr, 1 << 20)) > 0) {
  }
  say("copied", copied);
  close(binary);
  const int reader = open_file("program", O_RDONLY);
  const int other = open_file("binary", O_RDONLY);
  std::fflush(stdout);
  for (const char* name : {"./program", "./binary"}) {
    if (fork() == 0) {
      execl(name, name, nullptr);
      say(name, -1);
      std::fflush(stdout);
      _exit(1);
    }
    int status = 0;
    wait(&status);
    say("ended with", status);
  }
  close(reader);
  close(other);
}

// An error in the target shows before the call finds nothing to send.
SCENE(nothing_to_send) {
  const int from = make_file("from", "0123456789");
  const int device = open("/dev/zero", O_RDONLY);
  const int directory = open(".", O_RDONLY);
  for (const int source : {from, device, directory}) {
    say("to what appends",
        sendfile(open_file("to", O_WRONLY | O_CREAT | O_APPEND), source, nullptr, 0));
    say("to a reader", sendfile(open_file("to", O_RDONLY), source, nullptr, 0));
    say("to a writer", sendfile(open_file("to", O_WRONLY), source, nullptr, 0));
  }
}

// So is what is wrong with the source's position, even before a target that cannot be written.
SCENE(sending_past_the_last_position) {
  const int from = make_file("from", "0123456789");
  const int target = open_file("to", O_WRONLY | O_CREAT);
  const int reader = open_file("to", O_RDONLY);
  for (const off_t at : {off_t{0}, INT64_MAX - 3999, INT64_MAX}) {
    for (const int to : {target, reader}) {
      off_t offset = at;
      say("given", sendfile(to, from, &offset, 4000));
      say("positioned", lseek(from, at, SEEK_SET));
      say("from there", sendfile(to, from, nullptr, 4000));
    }
  }
  say("more than a call can say", sendfile(target, from, nullptr, SIZE_MAX));
}

// The largest file of ext4 has 16 TiB less a block, and a directory's positions go beyond that.
SCENE(sending_from_behind_the_largest_file) {
  constexpr off_t kLargest = (off_t{1} << 44) - 4096;
  const int from = make_file("from", "0123456789");
  const int directory = open(".", O_RDONLY | O_DIRECTORY);
  const int target = open_file("to", O_WRONLY | O_CREAT);
  const int appending = open_file("to", O_WRONLY | O_APPEND);
  const int reader = open_file("to", O_RDONLY);
  for (const off_t at : {kLargest - 1, kLargest, kLargest + 1, INT64_MAX - 41345}) {
    for (const int to : {target, appending, reader}) {
      for (const std::size_t length : {0, 1, 4000}) {
        off_t offset = at;
        say("file", sendfile(to, from, &offset, length));
        say("directory", sendfile(to, directory, &offset, length));
      }
    }
  }
  say("end", lseek(directory, 0, SEEK_END) > kLargest);
  say("directory at its end", sendfile(target, directory, nullptr, 151));
}

// One call moves as much as the kernel moves in one.
SCENE(large_copies) {
  constexpr off_t kBytes = 70 * 1024 * 1024;
  const int from = open_file("from");
  const int to = open_file("to");
  say("truncate", ftruncate(from, kBytes));
  say("end", pwrite(from, "end", 3, kBytes - 3));
  say("copied", copy_file_range(from, nullptr, to, nullptr, 1 << 30, 0));
  char end[4] = {};
  say("read", pread(to, end, sizeof end, kBytes - 4));
  say_bytes("end", end, sizeof end);
  say("truncate", ftruncate(to, 0));
  lseek(to, 0, SEEK_SET);
  off_t at = 1;
  say("sent", sendfile(to, from, &at, 1 << 30));
  say("at", at);
  say("read", pread(to, end, sizeof end, kBytes - 5));
  say_bytes("end", end, sizeof end);
  unlink("from");
  unlink("to");
}

// What calls say to flags that they do not have.
SCENE(unknown_flags) {
  const int fd = make_file("f", "0123456789");
  const int reader = open_file("f", O_RDONLY);
  int pipes[2];
  say("pipe", pipe(pipes));
  say("close_range", close_range(static_cast<unsigned>(fd), static_cast<unsigned>(fd), 64));
  say("splice", splice(fd, nullptr, pipes[1], nullptr, 5, 0xff));
  say("splice", splice(fd, nullptr, pipes[1], nullptr, 5, 0x10));
  say("readahead", readahead(fd, 0, SIZE_MAX));
  char byte = 'x';
  const iovec part{&byte, 1};
  for (int flags = 0; flags < 0x400; flags = flags < 0x40 ? flags + 1 : flags * 2) {
    if ((flags & RWF_NOWAIT) != 0) continue;
    say("preadv2", preadv2(fd, &part, 1, 3, flags));
    say("preadv2", preadv2(reader, &part, 1, 3, flags));
    if ((flags & 0x40) == 0) say("pwritev2", pwritev2(fd, &part, 1, 3, flags));
  }
  say_file("f");
}

// A pipe that is nearly full takes what it has room for.
SCENE(splices_into_a_full_pipe) {
  constexpr std::size_t kBytes = 40960;
  const int fd = open_file("f");
  say("truncate", ftruncate(fd, 4 * kBytes));
  int pipes[2];
  say("pipe", pipe(pipes));
  off_t at = 0;
  say("first", splice(fd, &at, pipes[1], nullptr, kBytes, 0));
  say("second", splice(fd, &at, pipes[1], nullptr, kBytes, 0));
  say("at", at);
  say("full", splice(fd, &at, pipes[1], nullptr, kBytes, SPLICE_F_NONBLOCK));
  fcntl(pipes[1], F_SETFL, O_NONBLOCK);
  say("full", splice(fd, &at, pipes[1], nullptr, kBytes, 0));
  say("at", at);
  at = 4 * kBytes;
  say("at the end", splice(fd, &at, pipes[1], nullptr, kBytes, SPLICE_F_NONBLOCK));
  say("back", splice(pipes[0], nullptr, fd, nullptr, 65536, SPLICE_F_NONBLOCK) > 0);
}

// Not every file system has O_DIRECT (ramfs): a refusal changes nothing.
SCENE(direct_where_there_is_none) {
  for (const int access : {O_RDWR, O_RDONLY, O_RDWR | O_APPEND}) {
    const int fd = open_file("f", access | O_CREAT);
    say("set", fcntl(fd, F_SETFL, O_DIRECT));
    say("is set", (fcntl(fd, F_GETFL) & O_DIRECT) != 0);
    say("appends", (fcntl(fd, F_GETFL) & O_APPEND) != 0);
    say("taken back", fcntl(fd, F_SETFL, 0));
    say("write", write(fd, "abc", 3));
  }
  say("opened", open("f", O_RDONLY | O_DIRECT) >= 0);
  say_file("f");
}

// With no number left a file is worked on by the program's own: its duplicate outlives that.
SCENE(a_duplicate_in_a_full_table) {
  close(make_file("f", "0123456789"));
  const rlimit few{40, 40};
  say("limit", setrlimit(RLIMIT_NOFILE, &few));
  int last = -1;
  for (int fd; (fd = open("/dev/null", O_RDONLY)) >= 0;) last = fd;
  close(last);
  const int fd = open_file("f", O_RDWR);
  const int duplicate = dup2(fd, last - 1);
  say("close", close(fd));
  say("write", write(duplicate, "abc", 3));
  say("fsync", fsync(duplicate));
  say("truncate", ftruncate(duplicate, 5));
  say("close", close(duplicate));
  say_file("f");
}
