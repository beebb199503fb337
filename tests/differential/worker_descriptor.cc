// SPDX-License-Identifier: Apache-2.0
// Duplicated descriptors, flags, syncing, kernel-side copies, locks and asynchronous I/O.
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>

#include "worker.h"

namespace cairn::differential {
namespace {

Slot& slot_at(Worker& worker, std::int64_t index) {
  return worker.slots[static_cast<std::size_t>(index % kSlots)];
}

void run_dup(Worker& worker, const Operation& op, Text& text) {
  Slot& from = slot_at(worker, op.a);
  Slot& to = slot_at(worker, op.b);
  if (from.fd < 0 || &from == &to) {
    text.add(" skip");
    return;
  }
  text.add("(%lld,%lld)", static_cast<long long>(op.a), static_cast<long long>(op.b % kSlots));
  int fd;
  if (op.kind == Kind::dup2 && to.fd >= 0) {
    fd = op.seed & 1 ? dup2(from.fd, to.fd) : dup3(from.fd, to.fd, O_CLOEXEC);
  } else {
    if (to.fd >= 0) close(to.fd);
    to = Slot{};
    fd = op.kind == Kind::dup2  ? dup2(from.fd, 200 + static_cast<int>(op.b % kSlots))
         : op.kind == Kind::dup ? dup(from.fd)
         : (op.seed & 1) != 0   ? fcntl(from.fd, F_DUPFD, 100)
                                : fcntl(from.fd, F_DUPFD_CLOEXEC, 30);
  }
  text.descriptor(worker, fd);
  if (fd < 0) return;
  to.fd = fd;
  to.description = from.description;
  add_afterwards(worker, text, to, op.seed);
}

void run_flags(const Slot& slot, const Operation& op, Text& text) {
  if (op.kind == Kind::get_flags) {
    text.add("(%lld) fl", static_cast<long long>(op.a));
    text.result(status_flags(slot.fd)).add(" fd").result(fcntl(slot.fd, F_GETFD));
    return;
  }
  int flags = fcntl(slot.fd, F_GETFL);
  if (op.d % 3 == 0) {
    text.add("(%lld,cloexec)", static_cast<long long>(op.a));
    text.result(fcntl(slot.fd, F_SETFD, op.seed & 1 ? FD_CLOEXEC : 0));
    return;
  }
  flags ^= op.d % 3 == 1 && !slot.description->direct ? O_APPEND : O_NONBLOCK;
  text.add("(%lld,%x)", static_cast<long long>(op.a), flags & (O_APPEND | O_NONBLOCK));
  const int result = fcntl(slot.fd, F_SETFL, flags);
  text.result(result);
  if (result == 0) slot.description->append = (flags & O_APPEND) != 0;
}

void run_sync(const Slot& slot, const Operation& op, Text& text) {
  text.add("(%lld)", static_cast<long long>(op.a));
  switch (op.kind) {
    case Kind::fsync:
      text.result(fsync(slot.fd));
      return;
    case Kind::fdatasync:
      text.result(fdatasync(slot.fd));
      return;
    case Kind::sync_range:
      text.result(sync_file_range(slot.fd, op.b, op.c, SYNC_FILE_RANGE_WRITE));
      return;
    default: {
      const int error = posix_fadvise(slot.fd, op.b, op.c, static_cast<int>(op.d % 6));
      text.add("=%s", error == 0 ? "0" : strerrorname_np(error));
    }
  }
}

// The two ends of a copy; copying a file onto itself is left to copy_range, which defines it.
struct Ends {
  Slot* in;
  Slot* out;
  bool usable;
};

Ends ends_of(Worker& worker, const Operation& op, bool allow_same) {
  Ends ends{&slot_at(worker, op.a), &slot_at(worker, op.b), false};
  if (ends.in->fd < 0 || ends.out->fd < 0) return ends;
  if (ends.in->description->direct || ends.out->description->direct) return ends;
  struct stat in, out;
  if (fstat(ends.in->fd, &in) != 0 || fstat(ends.out->fd, &out) != 0) return ends;
  // Keeps files and offsets inside the bounds of the test.
  if (out.st_size > kFileBytesMax && ends.out->description->append) return ends;
  if (lseek(ends.out->fd, 0, SEEK_CUR) > kFileBytesMax) lseek(ends.out->fd, 77, SEEK_SET);
  ends.usable = allow_same || in.st_ino != out.st_ino;
  return ends;
}

void run_copy_range(Worker& worker, const Operation& op, Text& text) {
  Random random(op.seed);
  const Ends ends = ends_of(worker, op, true);
  if (!ends.usable) {
    text.add(" skip");
    return;
  }
  off_t in_at = random_offset(random), out_at = random_offset(random);
  off_t* in = random.one_in(3) ? nullptr : &in_at;
  off_t* out = random.one_in(3) ? nullptr : &out_at;
  auto left = static_cast<std::size_t>(op.c);
  text.add("(%lld,%lld,%lld,%lld,%zu)", static_cast<long long>(op.a),
           static_cast<long long>(op.b % kSlots), in != nullptr ? (long long)in_at : -1LL,
           out != nullptr ? (long long)out_at : -1LL, left);
  std::int64_t total = 0;
  ssize_t moved;
  // A short count is allowed; the sum and the final error are what must agree.
  do {
    moved = copy_file_range(ends.in->fd, in, ends.out->fd, out, left, 0);
    if (moved > 0) {
      total += moved;
      left -= static_cast<std::size_t>(moved);
    }
  } while (moved > 0 && left > 0);
  text.result(moved < 0 ? moved : 0).add(" total=%lld", static_cast<long long>(total));
  if (in != nullptr) text.add(" in=%lld", static_cast<long long>(in_at));
  if (out != nullptr) text.add(" out=%lld", static_cast<long long>(out_at));
  add_afterwards(worker, text, *ends.out, op.seed);
  add_afterwards(worker, text, *ends.in, op.seed);
}

void run_sendfile(Worker& worker, const Operation& op, Text& text) {
  Random random(op.seed);
  const Ends ends = ends_of(worker, op, false);
  if (!ends.usable) {
    text.add(" skip");
    return;
  }
  off_t at = random_offset(random);
  off_t* offset = random.one_in(3) ? nullptr : &at;
  text.add("(%lld,%lld,%lld,%lld)", static_cast<long long>(op.a),
           static_cast<long long>(op.b % kSlots), offset != nullptr ? (long long)at : -1LL,
           static_cast<long long>(op.c));
  std::int64_t total = 0;
  auto left = static_cast<std::size_t>(op.c);
  ssize_t moved;
  do {
    moved = sendfile(ends.out->fd, ends.in->fd, offset, left);
    if (moved > 0) {
      total += moved;
      left -= static_cast<std::size_t>(moved);
    }
  } while (moved > 0 && left > 0);
  text.result(moved < 0 ? moved : 0).add(" total=%lld", static_cast<long long>(total));
  if (offset != nullptr) text.add(" in=%lld", static_cast<long long>(at));
  add_afterwards(worker, text, *ends.out, op.seed);
  add_afterwards(worker, text, *ends.in, op.seed);
}

// file -> pipe -> file, or file -> pipe -> memory
void run_splice(Worker& worker, const Operation& op, Text& text) {
  Random random(op.seed);
  const Ends ends = ends_of(worker, op, false);
  int pipe_ends[2];
  if (!ends.usable || pipe2(pipe_ends, O_CLOEXEC) != 0) {
    text.add(" skip");
    return;
  }
  off_t in_at = random_offset(random), out_at = random_offset(random);
  off_t* in = random.one_in(3) ? nullptr : &in_at;
  off_t* out = random.one_in(3) ? nullptr : &out_at;
  // Few enough bytes to fit any pipe, whatever the alignment of the pages.
  const auto length = static_cast<std::size_t>(std::min<std::int64_t>(op.c, 32768));
  const ssize_t got = splice(ends.in->fd, in, pipe_ends[1], nullptr, length, SPLICE_F_NONBLOCK);
  text.add("(%lld,%lld,%zu)", static_cast<long long>(op.a), static_cast<long long>(op.b % kSlots),
           length);
  text.result(got);
  if (got > 0 && op.seed % 3 == 0) {
    const ssize_t read_back = read(pipe_ends[0], read_buffer(), static_cast<std::size_t>(got));
    text.add(" pipe").result(read_back);
    text.add(" %016llx",
             (unsigned long long)hash_bytes(read_buffer(), std::max<ssize_t>(read_back, 0)));
  } else if (got > 0) {
    std::int64_t left = got;
    ssize_t put = 0;
    while (left > 0 && (put = splice(pipe_ends[0], nullptr, ends.out->fd, out,
                                     static_cast<std::size_t>(left), 0)) > 0)
      left -= put;
    text.add(" out").result(put < 0 ? put : got - left);
  }
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  add_afterwards(worker, text, *ends.out, op.seed);
  add_afterwards(worker, text, *ends.in, op.seed);
}

void describe_lock(const Worker& worker, const struct flock& lock, Text& text) {
  // All of it also where nobody is in the way: then it is what was asked for.
  text.add(" type=%d %d:%lld+%lld", lock.l_type, lock.l_whence,
           static_cast<long long>(lock.l_start), static_cast<long long>(lock.l_len));
  int owner = lock.l_pid == -1 ? -1 : -2;
  for (int process = 0; process < kProcesses; ++process)
    if (worker.shared->pids[static_cast<std::size_t>(process)] == lock.l_pid) owner = process;
  text.add(" owner=%d", owner);
}

// "length" requests of one slot, read or written by the C library's own threads.
void prepare_aio(const Slot& slot, const Operation& op, int index, struct aiocb& request) {
  request = {};
  request.aio_fildes = slot.fd;
  request.aio_offset = op.b + index * 70000;
  request.aio_nbytes = static_cast<std::size_t>(std::min<std::int64_t>(op.c, 60000));
  const bool writes = (op.seed >> index & 1) != 0;
  request.aio_buf = (writes ? write_buffer() : read_buffer()) + index * 65536;
  request.aio_lio_opcode = writes ? LIO_WRITE : LIO_READ;
}

void finish_aio(struct aiocb& request, Text& text) {
  const struct aiocb* list[] = {&request};
  while (aio_error(&request) == EINPROGRESS) aio_suspend(list, 1, nullptr);
  const int error = aio_error(&request);
  const ssize_t got = aio_return(&request);
  text.add(" %lld/%s", static_cast<long long>(got), error == 0 ? "0" : strerrorname_np(error));
  // aio_fsync returns 0 here and so hashes nothing.
  if (got > 0 && request.aio_lio_opcode == LIO_READ)
    text.add(" %016llx", (unsigned long long)hash_bytes(const_cast<void*>(request.aio_buf), got));
}

}  // namespace

void run_descriptor(Worker& worker, const Operation& op, Text& text) {
  if (kind_class(op.kind) == "dup" && op.kind != Kind::set_flags && op.kind != Kind::get_flags)
    return run_dup(worker, op, text);
  const Slot& slot = slot_at(worker, op.a);
  if (slot.fd < 0) {
    text.add(" skip");
    return;
  }
  if (kind_class(op.kind) == "dup") return run_flags(slot, op, text);
  run_sync(slot, op, text);
}

void run_copy(Worker& worker, const Operation& op, Text& text) {
  if (op.kind == Kind::copy_range) return run_copy_range(worker, op, text);
  if (op.kind == Kind::sendfile) return run_sendfile(worker, op, text);
  run_splice(worker, op, text);
}

void run_lock(Worker& worker, const Operation& op, Text& text) {
  static constexpr short kTypes[] = {F_RDLCK, F_WRLCK, F_UNLCK};
  static constexpr int kFlocks[] = {LOCK_SH | LOCK_NB, LOCK_EX | LOCK_NB, LOCK_UN};
  const Slot& slot = slot_at(worker, op.a);
  if (slot.fd < 0) {
    text.add(" skip");
    return;
  }
  if (op.kind == Kind::flock) {
    text.add("(%lld,%d)", static_cast<long long>(op.a), kFlocks[op.d % 3]);
    text.result(flock(slot.fd, kFlocks[op.d % 3]));
    return;
  }
  struct flock lock = {};
  lock.l_type = kTypes[op.d % 3];
  if (op.kind == Kind::get_lock && lock.l_type == F_UNLCK) lock.l_type = F_WRLCK;
  lock.l_whence = static_cast<short>(op.d / 3 % 3);
  lock.l_start = op.b % 1000;
  lock.l_len = op.c % 100;
  text.add("(%lld,%d,%lld+%lld)", static_cast<long long>(op.a), lock.l_type,
           static_cast<long long>(lock.l_start), static_cast<long long>(lock.l_len));
  if (op.kind == Kind::lock) {
    const int result = fcntl(slot.fd, F_SETLK, &lock);
    text.result(result);
    worker.locked = true;
  } else if (op.kind == Kind::ofd_lock && (op.seed & 1) != 0) {
    text.result(fcntl(slot.fd, F_OFD_SETLK, &lock));
  } else {
    if (op.kind == Kind::ofd_lock && lock.l_type == F_UNLCK) lock.l_type = F_WRLCK;
    const int result = fcntl(slot.fd, op.kind == Kind::get_lock ? F_GETLK : F_OFD_GETLK, &lock);
    text.result(result);
    if (result == 0) describe_lock(worker, lock, text);
  }
}

void run_aio(Worker& worker, const Operation& op, Text& text) {
  const Slot& slot = slot_at(worker, op.a);
  if (slot.fd < 0 || slot.description->direct) {
    text.add(" skip");
    return;
  }
  fill_pattern(write_buffer(), 3 * 65536, op.seed);
  struct aiocb requests[3];
  // Appending requests have no defined order among themselves.
  const int count = op.kind == Kind::lio && !slot.description->append ? 3 : 1;
  for (int i = 0; i < count; ++i) prepare_aio(slot, op, i, requests[i]);
  text.add("(%lld,%lld)", static_cast<long long>(op.a), static_cast<long long>(op.b));
  if (op.kind == Kind::lio) {
    struct aiocb* list[] = {&requests[0], &requests[1], &requests[2]};
    text.result(lio_listio(LIO_WAIT, list, count, nullptr));
  } else if (op.d % 7 == 0) {
    text.add("sync").result(aio_fsync(op.d & 1 ? O_SYNC : O_DSYNC, &requests[0]));
  } else {
    text.result(requests[0].aio_lio_opcode == LIO_WRITE ? aio_write(&requests[0])
                                                        : aio_read(&requests[0]));
  }
  for (int i = 0; i < count; ++i) finish_aio(requests[i], text);
  add_afterwards(worker, text, slot, op.seed);
}

}  // namespace cairn::differential
