// SPDX-License-Identifier: Apache-2.0
// ioctl() on files with something unstored in them, and with their descriptors inside.
#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>

#include "scene.h"

using namespace scene;

namespace {

struct Reservation {  // struct space_resv
  std::int16_t type = 0;
  std::int16_t whence = SEEK_SET;
  std::int64_t start = 0;
  std::int64_t length = 0;
  std::int32_t system = 0;
  std::uint32_t process = 0;
  std::int32_t padding[4] = {};
};
constexpr unsigned long kReserve = _IOW('X', 42, Reservation);
constexpr unsigned long kPunch = _IOW('X', 43, Reservation);
constexpr unsigned long kPunchOld = _IOW('X', 41, Reservation);
constexpr unsigned long kZero = _IOW('X', 57, Reservation);

struct MoveExtent {  // struct move_extent
  std::uint32_t reserved = 0;
  std::uint32_t donor_fd = 0;
  std::uint64_t origin = 0;
  std::uint64_t donor = 0;
  std::uint64_t length = 0;
  std::uint64_t moved = 0;
};

constexpr std::size_t kBytes = 65536;
constexpr std::size_t kPage = 4096;

// A file of kBytes, of which nothing has been stored yet.
int make_fresh(const char* name, char content, int flags = O_RDWR | O_CREAT | O_TRUNC) {
  const int fd = open_file(name, flags);
  const std::string bytes(kBytes, content);
  say("written", write(fd, bytes.data(), bytes.size()));
  return fd;
}

// One line for each run of equal bytes.
void say_runs(int fd) {
  struct stat status;
  fstat(fd, &status);
  std::string bytes(static_cast<std::size_t>(status.st_size), '?');
  say("read", pread(fd, bytes.data(), bytes.size(), 0));
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = std::min(bytes.find_first_not_of(bytes[at], at), bytes.size());
    std::printf("%zu to %zu: %02x\n", at, end, static_cast<unsigned char>(bytes[at]));
    at = end;
  }
}

struct Range {
  std::int64_t start;
  std::int64_t length;
  std::int16_t whence = SEEK_SET;
};

void shape(int fd, const char* what, unsigned long request, const Range& range) {
  Reservation reservation;
  reservation.whence = range.whence;
  reservation.start = range.start;
  reservation.length = range.length;
  say(what, ioctl(fd, request, &reservation));
}

// What shape the file is in, and that the next write and read are of that file.
void use_further(int fd) {
  say_runs(fd);
  say("size", lseek(fd, 0, SEEK_END));
  say("pwrite", pwrite(fd, "after", 5, 100));
  char back[8] = {};
  say("pread", pread(fd, back, sizeof back, 98));
  say_bytes("back", back, sizeof back);
}

long clone_range(int to, int from, std::uint64_t at, std::uint64_t length) {
  file_clone_range range{};
  range.src_fd = from;
  range.src_length = length;
  range.dest_offset = at;
  return ioctl(to, FICLONERANGE, &range);
}

}  // namespace

SCENE(punched_and_zeroed) {
  const int fd = make_fresh("f", 'x');
  shape(fd, "punch", kPunch, {0, 32768});
  say_runs(fd);
  shape(fd, "zero", kZero, {32768, 4096});
  shape(fd, "punch, old name", kPunchOld, {40000, 5000});
  shape(fd, "reserve past the end", kReserve, {65536, 65536});
  use_further(fd);
  shape(fd, "punch past the end", kPunch, {1 << 20, 4096});
  shape(fd, "zero across the end", kZero, {60000, 20000});
  use_further(fd);
}

SCENE(ranges_from_elsewhere) {
  const int fd = make_fresh("f", 'x');
  lseek(fd, 1000, SEEK_SET);
  shape(fd, "from here", kPunch, {24, 3000, SEEK_CUR});
  shape(fd, "from the end", kZero, {-8192, 4096, SEEK_END});
  shape(fd, "before the beginning", kZero, {-70000, 4096, SEEK_END});
  shape(fd, "of nothing", kZero, {0, 0});
  shape(fd, "of less", kPunch, {0, -1});
  shape(fd, "from nowhere", kPunch, {0, 1, 7});
  const int reader = open_file("f", O_RDONLY);
  shape(reader, "by a reader", kPunch, {0, 4096});
  use_further(fd);
}

SCENE(extents_moved) {
  const int fd = make_fresh("f", 'x');
  const int donor = make_fresh("donor", 'd');
  MoveExtent move;
  move.donor_fd = static_cast<std::uint32_t>(donor);
  move.length = 4;
  say("move", ioctl(fd, _IOWR('f', 15, MoveExtent), &move));
  say("moved", static_cast<long>(move.moved));
  say("still the donor", move.donor_fd == static_cast<std::uint32_t>(donor) ? 1 : 0);
  use_further(fd);
  use_further(donor);
}

// What nobody has heard of may do anything, but not this to that file.
SCENE(unknown_requests) {
  const int fd = make_fresh("f", 'x');
  say("unknown", ioctl(fd, _IO('z', 99), nullptr));
  say("terminal", ioctl(fd, TIOCGWINSZ, nullptr));
  say("block device", ioctl(fd, BLKGETSIZE, nullptr));
  use_further(fd);
  int flags = 0;
  say("flags", ioctl(fd, FS_IOC_GETFLAGS, &flags));
  const int wanted = flags | FS_NODUMP_FL;
  say("set", ioctl(fd, FS_IOC_SETFLAGS, &wanted));
  int now = 0;
  say("flags", ioctl(fd, FS_IOC_GETFLAGS, &now));
  say("are set", now == wanted ? 1 : 0);
  // Numbers are of 32 bits, though some programs keep them in a signed int.
  say("extended", ioctl(fd, static_cast<unsigned long>(static_cast<int>(FS_IOC_GETFLAGS)), &now));
  use_further(fd);
}

SCENE(where_bytes_lie) {
  const int fd = make_fresh("f", 'x');
  fiemap map{};
  map.fm_length = kBytes;
  map.fm_flags = FIEMAP_FLAG_SYNC;
  say("fiemap", ioctl(fd, FS_IOC_FIEMAP, &map));
  say("extents", map.fm_mapped_extents > 0 ? 1 : 0);
  long long bytes = 0;
  say("qsize", ioctl(fd, FIOQSIZE, &bytes));
  say("bytes", bytes >= static_cast<long long>(kBytes) ? 1 : 0);
  int block = 0;
  say("block size", ioctl(fd, FIGETBSZ, &block));
  say("is", block);
  use_further(fd);
}

SCENE(status_flags) {
  const int fd = make_fresh("f", 'x');
  int on = 1;
  int off = 0;
  say("nonblocking", ioctl(fd, FIONBIO, &on));
  say("flags", fcntl(fd, F_GETFL));
  say("duplicate's", fcntl(dup(fd), F_GETFL));
  say("blocking", ioctl(fd, FIONBIO, &off));
  say("flags", fcntl(fd, F_GETFL));
  say("asynchronous", ioctl(fd, FIOASYNC, &on));
  say("flags", fcntl(fd, F_GETFL));
  say("synchronous", ioctl(fd, FIOASYNC, &off));
  say("set asynchronous", fcntl(fd, F_SETFL, O_ASYNC | O_APPEND));
  say("flags", fcntl(fd, F_GETFL));
  say("nonblocking", ioctl(fd, FIONBIO, &on));
  say("flags", fcntl(fd, F_GETFL));
  say("of the open", fcntl(open_file("f", O_RDWR | O_NOFOLLOW), F_GETFL));
  say("without a name", fcntl(open_file(".", O_RDWR | O_TMPFILE), F_GETFL));
  const int born = open_file("g", O_RDWR | O_CREAT | O_ASYNC);
  say("born asynchronous", fcntl(born, F_GETFL));
  say("synchronous", ioctl(born, FIOASYNC, &off));
  say("set", fcntl(born, F_SETFL, O_NONBLOCK));
  say("flags", fcntl(born, F_GETFL));
  say("close on exec", ioctl(fd, FIOCLEX));
  say("flags", fcntl(fd, F_GETFD));
  say("keep", ioctl(fd, FIONCLEX));
  say("flags", fcntl(fd, F_GETFD));
}

SCENE(bytes_left) {
  const int fd = make_fresh("f", 'x');
  int left = 0;
  for (const off_t at : {0, 5, 65536, 70000}) {
    lseek(fd, at, SEEK_SET);
    say("left", ioctl(fd, FIONREAD, &left));
    say("is", left);
  }
}

SCENE(clones) {
  const int from = make_fresh("from", 'x');
  const int to = open_file("to");
  say("clone", ioctl(to, FICLONE, from));
  use_further(from);
  use_further(to);
  say("clone a page", clone_range(to, from, 2 * kPage, kPage));
  say_runs(to);
  say("clone onto itself", ioctl(to, FICLONE, to));
  say("clone odd bytes", clone_range(to, from, 7, kPage));
  say("clone past the end", clone_range(to, from, kPage, 2 * kBytes));
  use_further(to);
}

SCENE(what_cannot_be_cloned) {
  const int from = make_fresh("from", 'x');
  const int to = open_file("to");
  const int reader = open_file("to", O_RDONLY);
  const int writer = open_file("from", O_WRONLY);
  const int appender = open_file("to", O_WRONLY | O_APPEND);
  const int directory = open_file(".", O_RDONLY | O_DIRECTORY);
  const int elsewhere = open_file("/proc/self/status", O_RDONLY);
  int pipes[2];
  say("pipe", pipe(pipes));
  const int nobody = 999;
  for (const int source : {from, writer, directory, pipes[0], elsewhere, nobody}) {
    for (const int target : {to, reader, appender, directory, pipes[1], nobody}) {
      say("clone", ioctl(target, FICLONE, source));
      say("clone a range", clone_range(target, source, 0, 0));
      say("copy", copy_file_range(source, nullptr, target, nullptr, 0, 0));
      off_t before = -1;
      off_t zero = 0;
      say("copy from before", copy_file_range(source, &before, target, nullptr, 10, 0));
      say("copy to before", copy_file_range(source, &zero, target, &before, 10, 0));
      say("copy with flags", copy_file_range(source, &zero, target, &before, 10, 1));
    }
  }
}

SCENE(deduplicated) {
  const int one = make_fresh("one", 'x');
  const int other = make_fresh("other", 'x');
  const int different = make_fresh("different", 'y');
  const std::size_t bytes = sizeof(file_dedupe_range) + 3 * sizeof(file_dedupe_range_info);
  auto* request = static_cast<file_dedupe_range*>(std::calloc(1, bytes));
  request->src_length = 4 * kPage;
  request->dest_count = 3;
  request->info[0].dest_fd = other;
  request->info[1].dest_fd = different;
  request->info[2].dest_fd = 999;
  say("dedupe", ioctl(one, FIDEDUPERANGE, request));
  for (int at = 0; at < 3; ++at) {
    say("status",
        request->info[at].status < 0 ? -request->info[at].status : request->info[at].status);
    say("bytes", static_cast<long>(request->info[at].bytes_deduped));
  }
  say("still the descriptor", request->info[0].dest_fd == other ? 1 : 0);
  use_further(one);
  use_further(other);
  use_further(different);
}
