// SPDX-License-Identifier: Apache-2.0
// Sizes, allocation, attributes, times and names.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "worker.h"

namespace cairn::differential {
namespace {

bool all_zero(int fd, std::int64_t from, std::int64_t to) {
  while (from < to) {
    const auto want = std::min<std::int64_t>(to - from, kTransferBytesMax);
    const ssize_t got = pread(fd, read_buffer(), static_cast<std::size_t>(want), from);
    if (got <= 0) return got == 0;
    for (ssize_t i = 0; i < got; ++i)
      if (read_buffer()[i] != 0) return false;
    from += got;
  }
  return true;
}

// Where data begins and ends is the file system's own business (delayed allocation, block size);
// what must hold is that everything called a hole reads as zeros and that the bounds make sense.
void run_seek_hole(const Slot& slot, const Operation& op, Text& text) {
  struct stat stat;
  if (slot.description->path_only || slot.description->direct || fstat(slot.fd, &stat) != 0) {
    text.add(" skip");
    return;
  }
  const std::int64_t at = lseek(slot.fd, 0, SEEK_CUR);
  const std::int64_t from = op.b;
  const std::int64_t data = lseek(slot.fd, from, SEEK_DATA);
  const int data_error = errno;
  const std::int64_t hole = lseek(slot.fd, from, SEEK_HOLE);
  if (from >= stat.st_size) {
    errno = data_error;
    text.add("(beyond) data").result(data).add(" hole").result(hole);
  } else {
    bool sane = hole >= from && hole <= stat.st_size;
    if (data < 0) sane = sane && data_error == ENXIO;
    if (data >= 0) sane = sane && data >= from && data < stat.st_size;
    if (slot.description->access != O_WRONLY)
      sane = sane && all_zero(slot.fd, from, data < 0 ? stat.st_size : data);
    text.add("(%lld) %s", static_cast<long long>(from), sane ? "sane" : "INSANE");
    if (!sane)
      text.add(" data=%lld hole=%lld size=%lld", static_cast<long long>(data),
               static_cast<long long>(hole), static_cast<long long>(stat.st_size));
  }
  lseek(slot.fd, at, SEEK_SET);
}

int fallocate_mode(const Operation& op) {
  if (op.kind == Kind::fallocate_shift)
    return op.seed & 1 ? FALLOC_FL_COLLAPSE_RANGE : FALLOC_FL_INSERT_RANGE;
  switch (op.d % 6) {
    case 0:
      return FALLOC_FL_KEEP_SIZE;
    case 1:
    case 2:
      return FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    case 3:
      return FALLOC_FL_ZERO_RANGE;
    case 4:
      return FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;
    default:
      return 0;
  }
}

void run_fallocate(Worker& worker, const Slot& slot, const Operation& op, Text& text) {
  const bool shift = op.kind == Kind::fallocate_shift;
  std::int64_t offset = shift ? op.b & ~4095LL : op.b;
  std::int64_t length = shift ? (op.c & 0xF000) + 4096 : op.c;
  struct stat stat;
  // Inserting again and again would grow the file without end.
  if (shift && (fstat(slot.fd, &stat) != 0 || stat.st_size > kFileBytesMax)) {
    text.add(" skip");
    return;
  }
  if (op.kind == Kind::posix_fallocate) {
    const int error = posix_fallocate(slot.fd, offset, length);
    text.add("(%lld,%lld,%lld)=%s", static_cast<long long>(op.a), static_cast<long long>(offset),
             static_cast<long long>(length), error == 0 ? "0" : strerrorname_np(error));
  } else {
    const int mode = fallocate_mode(op);
    text.add("(%lld,%x,%lld,%lld)", static_cast<long long>(op.a), mode,
             static_cast<long long>(offset), static_cast<long long>(length));
    text.result(fallocate(slot.fd, mode, offset, length));
  }
  add_afterwards(worker, text, slot, op.seed);
}

void choose_times(const Operation& op, struct timespec times[2]) {
  Random random(op.seed);
  for (int i = 0; i < 2; ++i) {
    times[i].tv_sec = 1000000000 + random.below(300000000);
    times[i].tv_nsec = random.one_in(4) ? 0 : random.below(1000000000);
    if (random.one_in(8)) times[i].tv_nsec = UTIME_NOW;
    if (random.one_in(8)) times[i].tv_nsec = UTIME_OMIT;
  }
}

void run_times(Worker& worker, const Operation& op, Text& text) {
  struct timespec times[2];
  choose_times(op, times);
  const struct timespec* given = op.seed % 13 == 0 ? nullptr : times;
  struct stat stat;
  int failed, result;
  if (op.kind == Kind::futimens) {
    const Slot& slot = worker.slots[static_cast<std::size_t>(op.a)];
    if (slot.fd < 0) {
      text.add(" skip");
      return;
    }
    result = futimens(slot.fd, given);
    text.add("(%lld)", static_cast<long long>(op.a)).result(result);
    failed = fstat(slot.fd, &stat);
  } else {
    const std::string path = spell(worker, op.a, op.seed);
    const int flags = op.seed & 1 ? AT_SYMLINK_NOFOLLOW : 0;
    result = utimensat(AT_FDCWD, path.c_str(), given, flags);
    text.add("(%s)", path.c_str()).result(result);
    failed = fstatat(AT_FDCWD, path.c_str(), &stat, flags);
  }
  if (result != 0 || failed != 0) return;
  add_stat(worker, text, stat);
  if (S_ISREG(stat.st_mode) && given != nullptr && times[0].tv_nsec < 1000000000)
    text.add(" a=%lld.%09ld", static_cast<long long>(stat.st_atim.tv_sec), stat.st_atim.tv_nsec);
}

void run_mtime_hold(const Slot& slot, const Operation& op, Text& text) {
  struct stat before, after;
  if (fstat(slot.fd, &before) != 0) {
    text.add(" skip");
    return;
  }
  usleep(static_cast<unsigned>(5000 + op.d % 40000));
  (void)!pread(slot.fd, read_buffer(), 4096, 0);
  fstat(slot.fd, &after);
  const bool held = before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
                    before.st_mtim.tv_nsec == after.st_mtim.tv_nsec;
  text.add(" m=%s", held ? "held" : "MOVED");
}

void run_statx(Worker& worker, const Operation& op, Text& text) {
  struct statx x;
  const std::string path = spell(worker, op.a, op.seed);
  const int flags = op.seed & 1 ? AT_SYMLINK_NOFOLLOW : 0;
  text.add("(%s)", path.c_str());
  const int result = statx(AT_FDCWD, path.c_str(), flags, STATX_BASIC_STATS, &x);
  text.result(result);
  if (result != 0) return;
  struct stat stat = {};
  stat.st_size = static_cast<off_t>(x.stx_size);
  stat.st_nlink = x.stx_nlink;
  stat.st_mode = x.stx_mode;
  stat.st_ino = x.stx_ino;
  stat.st_mtim = {x.stx_mtime.tv_sec, static_cast<long>(x.stx_mtime.tv_nsec)};
  add_stat(worker, text, stat);
}

void run_readdir(const Operation& op, Text& text) {
  const std::string path = op.a < 10 ? "." : name_of(op.a, 0);
  DIR* directory = opendir(path.c_str());
  text.add("(%s)", path.c_str()).result(directory == nullptr ? -1 : 0);
  if (directory == nullptr) return;
  std::vector<std::string> names;
  while (const struct dirent* entry = readdir(directory))
    names.push_back(std::string(entry->d_name) + static_cast<char>('0' + entry->d_type));
  closedir(directory);
  std::sort(names.begin(), names.end());
  std::uint64_t hash = 0;
  for (const auto& name : names)
    hash = hash_bytes(name.data(), static_cast<std::int64_t>(name.size()), hash);
  text.add(" %zu names %016llx", names.size(), static_cast<unsigned long long>(hash));
}

void run_rename(Worker& worker, const Operation& op, Text& text) {
  const std::string from = spell(worker, op.a, op.seed);
  const std::string to = spell(worker, op.b, op.seed >> 3);
  int flags = 0;
  if (op.d % 8 == 0) flags = RENAME_NOREPLACE;
  if (op.d % 10 == 0) flags = RENAME_EXCHANGE;
  const bool directory = op.a == 10 || op.a == 11 || op.b == 10 || op.b == 11;
  if (directory && op.d % 5 != 0) {
    text.add(" skip");  // directories that wander about make most later steps fail
    return;
  }
  text.add("(%s,%s,%d)", from.c_str(), to.c_str(), flags);
  if (flags == 0 && (op.seed & 1) != 0) {
    text.result(rename(from.c_str(), to.c_str()));
  } else {
    text.result(
        renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), static_cast<unsigned>(flags)));
  }
}

void run_tmpfile(Worker& worker, const Operation& op, Text& text) {
  Slot& slot = worker.slots[static_cast<std::size_t>(op.a)];
  if (slot.fd >= 0) close(slot.fd);
  slot = Slot{};
  const int fd = open(".", O_TMPFILE | O_RDWR, 0600);
  text.add("(%lld)", static_cast<long long>(op.a)).descriptor(worker, fd);
  if (fd < 0) return;
  slot.fd = fd;
  slot.description = std::make_shared<Description>();
  slot.description->access = O_RDWR;
  fill_pattern(write_buffer(), op.c, op.seed);
  text.add(" write").result(write(fd, write_buffer(), static_cast<std::size_t>(op.c)));
  if (op.seed % 3 == 0) {
    const std::string path = name_of(op.b, worker.process);
    const std::string self = "/proc/self/fd/" + std::to_string(fd);
    text.add(" link(%s)", path.c_str())
        .result(linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW));
  }
}

void run_same_file(Worker& worker, const Slot& slot, const Operation& op, Text& text) {
  struct stat by_fd, by_name;
  const std::string path = spell(worker, op.b, op.seed);
  if (fstat(slot.fd, &by_fd) != 0 || stat(path.c_str(), &by_name) != 0) {
    text.add("(%s) no", path.c_str());
    return;
  }
  const bool same = by_fd.st_ino == by_name.st_ino && by_fd.st_dev == by_name.st_dev;
  text.add("(%s) %s", path.c_str(), same ? "same" : "other");
  if (same && by_fd.st_size != by_name.st_size) text.add(" SIZES DIFFER");
  if (same && (by_fd.st_mtim.tv_sec != by_name.st_mtim.tv_sec ||
               by_fd.st_mtim.tv_nsec != by_name.st_mtim.tv_nsec))
    text.add(" m=DIFFER");
}

}  // namespace

void run_allocation(Worker& worker, const Operation& op, Text& text) {
  const std::int64_t size = op.seed % 31 == 0 ? -1 : op.b;
  if (op.kind == Kind::truncate) {
    const std::string path = spell(worker, op.a, op.seed);
    text.add("(%s,%lld)", path.c_str(), static_cast<long long>(size));
    text.result(truncate(path.c_str(), size));
    return;
  }
  const Slot& slot = worker.slots[static_cast<std::size_t>(op.a)];
  if (slot.fd < 0) {
    text.add(" skip");
    return;
  }
  if (op.kind == Kind::seek_hole) return run_seek_hole(slot, op, text);
  if (op.kind != Kind::ftruncate) return run_fallocate(worker, slot, op, text);
  text.add("(%lld,%lld)", static_cast<long long>(op.a), static_cast<long long>(size));
  text.result(ftruncate(slot.fd, size));
  add_afterwards(worker, text, slot, op.seed);
}

void run_metadata(Worker& worker, const Operation& op, Text& text) {
  static constexpr mode_t kModes[] = {0644, 0600, 0666, 0755, 0640, 0400, 04755, 02755};
  struct stat stat;
  const auto index = static_cast<std::size_t>(op.a);
  const std::string path = spell(worker, op.a, op.seed);
  switch (op.kind) {
    case Kind::stat:
    case Kind::lstat: {
      const int result =
          op.kind == Kind::stat ? ::stat(path.c_str(), &stat) : lstat(path.c_str(), &stat);
      text.add("(%s)", path.c_str()).result(result);
      if (result == 0) add_stat(worker, text, stat);
      return;
    }
    case Kind::statx:
      return run_statx(worker, op, text);
    case Kind::access:
      text.add("(%s)", path.c_str())
          .result(op.seed & 1 ? access(path.c_str(), static_cast<int>(op.d & 7))
                              : faccessat(AT_FDCWD, path.c_str(), static_cast<int>(op.d & 7), 0));
      return;
    case Kind::chmod:
      text.add("(%s)", path.c_str())
          .result(chmod(path.c_str(), kModes[static_cast<std::size_t>(op.d) % std::size(kModes)]));
      return;
    case Kind::utimensat:
    case Kind::futimens:
      return run_times(worker, op, text);
    default:
      break;
  }
  const Slot& slot = worker.slots[index];
  if (slot.fd < 0) {
    text.add(" skip");
    return;
  }
  if (op.kind == Kind::mtime_hold) return run_mtime_hold(slot, op, text);
  text.add("(%lld)", static_cast<long long>(op.a));
  if (op.kind == Kind::fchmod) {
    text.result(fchmod(slot.fd, kModes[static_cast<std::size_t>(op.d) % std::size(kModes)]));
    return;
  }
  const int result =
      op.seed & 1 ? fstat(slot.fd, &stat) : fstatat(slot.fd, "", &stat, AT_EMPTY_PATH);
  text.result(result);
  if (result == 0) add_stat(worker, text, stat);
}

void run_name(Worker& worker, const Operation& op, Text& text) {
  if (op.kind == Kind::rename) return run_rename(worker, op, text);
  if (op.kind == Kind::readdir) return run_readdir(op, text);
  if (op.kind == Kind::tmpfile) return run_tmpfile(worker, op, text);
  if (op.kind == Kind::same_file) {
    const Slot& slot = worker.slots[static_cast<std::size_t>(op.a)];
    if (slot.fd < 0) {
      text.add(" skip");
      return;
    }
    return run_same_file(worker, slot, op, text);
  }
  const std::int64_t directory = 10 + op.a % 2;
  std::string path = spell(worker, op.a, op.seed);
  if (op.kind == Kind::mkdir || op.kind == Kind::rmdir) path = spell(worker, directory, op.seed);
  if (op.kind == Kind::symlink) path = spell(worker, 12 + op.a % 2, op.seed);
  text.add("(%s", path.c_str());
  switch (op.kind) {
    case Kind::unlink:
      text.add(")").result(op.seed & 1 ? unlink(path.c_str())
                                       : unlinkat(AT_FDCWD, path.c_str(), 0));
      return;
    case Kind::link: {
      const std::string to = spell(worker, op.b, op.seed >> 3);
      text.add(",%s)", to.c_str()).result(link(path.c_str(), to.c_str()));
      return;
    }
    case Kind::symlink: {
      const std::string target = name_of(op.b, worker.process);
      text.add("->%s)", target.c_str()).result(symlink(target.c_str(), path.c_str()));
      return;
    }
    case Kind::readlink: {
      char target[256];
      const ssize_t got = readlink(path.c_str(), target, sizeof target);
      text.add(")").result(got);
      if (got > 0) text.add(" %.*s", static_cast<int>(got), target);
      return;
    }
    case Kind::mkdir:
      text.add(")").result(mkdir(path.c_str(), 0755));
      return;
    default:
      text.add(")").result(rmdir(path.c_str()));
  }
}

}  // namespace cairn::differential
