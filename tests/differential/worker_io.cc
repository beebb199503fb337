// SPDX-License-Identifier: Apache-2.0
// Opening, closing, reading, writing and seeking.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "worker.h"

namespace cairn::differential {
namespace {

int random_open_flags(Random& random) {
  const auto ticket = random.below(100);
  int flags = ticket < 60 ? O_RDWR : ticket < 72 ? O_WRONLY : O_RDONLY;
  if (random.below(100) < 75) flags |= O_CREAT;
  if (random.below(100) < 6) flags |= O_EXCL;
  if (random.below(100) < 8) flags |= O_TRUNC;
  if (random.below(100) < 12) flags |= O_APPEND;
  if (random.below(100) < 3) flags |= random.one_in(2) ? O_SYNC : O_DSYNC;
  // O_APPEND with O_DIRECT fails whenever the size is not aligned, which says nothing.
  if (random.below(100) < 8 && (flags & O_APPEND) == 0) flags |= O_DIRECT;
  if (random.below(100) < 30) flags |= O_CLOEXEC;
  if (random.below(100) < 5) flags |= O_NOFOLLOW;
  if (random.below(100) < 3) flags |= O_NOATIME;
  if (random.below(100) < 2) flags |= O_PATH;
  if (random.below(100) < 1) flags |= O_DIRECTORY;
  // Whether O_EXCL without O_CREAT or O_CREAT with O_DIRECTORY does anything is undefined.
  if ((flags & O_CREAT) == 0) flags &= ~O_EXCL;
  if ((flags & O_DIRECTORY) != 0) flags &= ~(O_CREAT | O_EXCL | O_TRUNC);
  return flags;
}

void run_open(Worker& worker, const Operation& op, Text& text) {
  static constexpr mode_t kModes[] = {0644, 0600, 0666, 0755, 0640, 0444};
  Random random(op.seed);
  Slot& slot = worker.slots[static_cast<std::size_t>(op.a)];
  if (slot.fd >= 0) text.add("[close").result(close(slot.fd)).add("]");
  slot = Slot{};
  const int flags = random_open_flags(random);
  const mode_t mode = kModes[random.below(6)];
  const std::string path = spell(worker, op.b, op.seed);
  int fd;
  switch (random.below(4)) {
    case 0:
      fd = openat(path[0] == '/' ? AT_FDCWD : worker.directory_fd, path.c_str(), flags, mode);
      break;
    case 1:
      fd = open64(path.c_str(), flags, mode);
      break;
    default:
      fd = open(path.c_str(), flags, mode);
  }
  text.add("(%lld,%s,%x)", static_cast<long long>(op.a), path.c_str(), flags)
      .descriptor(worker, fd);
  if (fd < 0) return;
  slot.fd = fd;
  slot.description = std::make_shared<Description>();
  slot.description->direct = (flags & (O_DIRECT | O_PATH)) == O_DIRECT;
  slot.description->append = (flags & O_APPEND) != 0;
  slot.description->path_only = (flags & O_PATH) != 0;
  slot.description->access = flags & O_ACCMODE;
  add_afterwards(worker, text, slot, op.seed);
}

// One transfer as the script asks for it, bent to what direct I/O allows.
struct Transfer {
  std::int64_t offset;
  std::int64_t length;
  bool direct;
};

Transfer transfer_of(const Slot& slot, const Operation& op) {
  Transfer transfer{op.b, op.c, slot.description->direct};
  if (transfer.direct) {
    transfer.offset &= ~4095LL;
    transfer.length = (transfer.length + 4095) & ~4095LL;
  } else if (op.seed % 97 == 0) {
    transfer.offset = -1 - op.b % 5;  // EINVAL
  }
  return transfer;
}

// Splits a buffer into up to five pieces, some of them empty.
int split(Random& random, char* buffer, std::int64_t length, bool direct, struct iovec* pieces) {
  const int count = direct ? 1 : 1 + static_cast<int>(random.below(5));
  for (int i = 0; i < count; ++i) {
    const std::int64_t part = i + 1 == count ? length : random.below(length + 1);
    pieces[i] = {buffer, static_cast<std::size_t>(part)};
    buffer += part;
    length -= part;
  }
  return count;
}

// Appending scripts would grow a file without end.
void bound_growth(const Slot& slot) {
  struct stat stat;
  if (slot.description->append && fstat(slot.fd, &stat) == 0 && stat.st_size > kFileBytesMax * 2)
    (void)!ftruncate(slot.fd, 4321);
}

std::int64_t do_read(const Operation& op, int fd, const Transfer& transfer, char* buffer) {
  Random random(op.seed);
  struct iovec pieces[5];
  const auto length = static_cast<std::size_t>(transfer.length);
  if (op.kind == Kind::read) return read(fd, buffer, length);
  if (op.kind == Kind::pread)
    return op.seed & 1 ? pread(fd, buffer, length, transfer.offset)
                       : pread64(fd, buffer, length, transfer.offset);
  const int count = split(random, buffer, transfer.length, transfer.direct, pieces);
  if (op.kind == Kind::readv) return readv(fd, pieces, count);
  if (op.kind == Kind::preadv) return preadv(fd, pieces, count, transfer.offset);
  const bool at_offset = !transfer.direct && random.one_in(4);
  return preadv2(fd, pieces, count, at_offset ? -1 : transfer.offset, 0);
}

std::int64_t do_write(const Operation& op, int fd, const Transfer& transfer, char* buffer) {
  Random random(op.seed);
  struct iovec pieces[5];
  const auto length = static_cast<std::size_t>(transfer.length);
  if (op.kind == Kind::write) return write(fd, buffer, length);
  if (op.kind == Kind::pwrite)
    return op.seed & 1 ? pwrite(fd, buffer, length, transfer.offset)
                       : pwrite64(fd, buffer, length, transfer.offset);
  const int count = split(random, buffer, transfer.length, transfer.direct, pieces);
  if (op.kind == Kind::writev) return writev(fd, pieces, count);
  if (op.kind == Kind::pwritev) return pwritev(fd, pieces, count, transfer.offset);
  int flags = 0;
  if (random.one_in(10)) flags |= RWF_DSYNC;
  if (!transfer.direct && random.one_in(6)) flags |= RWF_APPEND;
  const bool at_offset = !transfer.direct && random.one_in(4);
  return pwritev2(fd, pieces, count, at_offset ? -1 : transfer.offset, flags);
}

void run_transfer(Worker& worker, const Operation& op, Text& text) {
  Slot& slot = worker.slots[static_cast<std::size_t>(op.a)];
  if (slot.fd < 0) {
    text.add(" skip");
    return;
  }
  const Transfer transfer = transfer_of(slot, op);
  const bool writes = op.kind == Kind::write || op.kind == Kind::pwrite ||
                      op.kind == Kind::writev || op.kind == Kind::pwritev ||
                      op.kind == Kind::pwritev2;
  // The shared offset has to be aligned too, and must stay in the bounds of the test.
  const std::int64_t at = lseek(slot.fd, 0, SEEK_CUR);
  if (at > kFileBytesMax || (transfer.direct && (at & 4095) != 0))
    lseek(slot.fd, (at % kFileBytesMax) & ~4095LL, SEEK_SET);
  if (writes) bound_growth(slot);
  text.add("(%lld,%lld,%lld)", static_cast<long long>(op.a),
           static_cast<long long>(transfer.offset), static_cast<long long>(transfer.length));
  if (writes) {
    fill_pattern(write_buffer(), transfer.length, op.seed);
    errno = 0;
    text.result(do_write(op, slot.fd, transfer, write_buffer()));
  } else {
    char* buffer = read_buffer();
    memset(buffer + transfer.length, 0x5A, 16);
    errno = 0;
    const std::int64_t got = do_read(op, slot.fd, transfer, buffer);
    text.result(got);
    if (got > 0) text.add(" %016llx", static_cast<unsigned long long>(hash_bytes(buffer, got)));
    for (int i = 0; i < 16; ++i)
      if (buffer[transfer.length + i] != 0x5A) text.add(" OVERRUN");
  }
  add_afterwards(worker, text, slot, op.seed);
}

void run_whole(Worker& worker, const Operation& op, Text& text) {
  const std::string path = spell(worker, op.a, op.seed);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | (op.seed % 8 == 0 ? O_NOFOLLOW : 0));
  text.add("(%s)", path.c_str()).result(fd < 0 ? -1 : 0);
  if (fd < 0) return;
  const auto piece = static_cast<std::size_t>(std::max<std::int64_t>(op.c, 4096));
  std::uint64_t hash = 0;
  std::int64_t total = 0;
  ssize_t got;
  // Each piece is filled fully before it is hashed, so that short reads do not show in the hash.
  do {
    std::size_t have = 0;
    while (have < piece && (got = read(fd, read_buffer() + have, piece - have)) > 0)
      have += static_cast<std::size_t>(got);
    if (have == 0) break;
    hash = hash_bytes(read_buffer(), static_cast<std::int64_t>(have), hash);
    total += static_cast<std::int64_t>(have);
  } while (got > 0 && total < 4 * kFileBytesMax);
  text.add(" total").result(got < 0 ? -1 : total);
  text.add(" %016llx", static_cast<unsigned long long>(hash));
  close(fd);
}

void run_seek(Worker& worker, const Operation& op, Text& text) {
  static constexpr int kWhence[] = {SEEK_SET, SEEK_CUR, SEEK_END};
  Slot& slot = worker.slots[static_cast<std::size_t>(op.a)];
  if (slot.fd < 0) {
    text.add(" skip");
    return;
  }
  const int whence = op.seed % 61 == 0 ? 99 : kWhence[op.d % 3];
  const std::int64_t offset = op.seed & 2 ? op.b : -(op.b % 70000);
  text.add("(%lld,%lld,%d)", static_cast<long long>(op.a), static_cast<long long>(offset), whence);
  text.result(op.seed & 1 ? lseek(slot.fd, offset, whence) : lseek64(slot.fd, offset, whence));
}

}  // namespace

void run_io(Worker& worker, const Operation& op, Text& text) {
  if (op.kind == Kind::open) return run_open(worker, op, text);
  if (op.kind == Kind::whole) return run_whole(worker, op, text);
  if (op.kind == Kind::lseek) return run_seek(worker, op, text);
  if (op.kind != Kind::close) return run_transfer(worker, op, text);
  Slot& slot = worker.slots[static_cast<std::size_t>(op.a)];
  if (slot.fd < 0) {
    text.add(" skip");
    return;
  }
  text.add("(%lld)", static_cast<long long>(op.a)).result(close(slot.fd));
  slot = Slot{};
}

}  // namespace cairn::differential
