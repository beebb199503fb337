// SPDX-License-Identifier: Apache-2.0
// ioctl(): requests that change a file behind everybody's back, that take a second descriptor, and
// that only ask.
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>

#include "worker.h"

namespace cairn::differential {
namespace {

constexpr std::int64_t kPage = 4096;

struct Reservation {  // struct space_resv
  std::int16_t type = 0;
  std::int16_t whence = SEEK_SET;
  std::int64_t start = 0;
  std::int64_t length = 0;
  std::int32_t system = 0;
  std::uint32_t process = 0;
  std::int32_t padding[4] = {};
};

struct MoveExtent {  // struct move_extent of ext4
  std::uint32_t reserved = 0;
  std::uint32_t donor_fd = 0;
  std::uint64_t origin = 0;
  std::uint64_t donor = 0;
  std::uint64_t length = 0;
  std::uint64_t moved = 0;
};

Slot& slot_at(Worker& worker, std::int64_t index) {
  return worker.slots[static_cast<std::size_t>(index % kSlots)];
}

void run_reserve(Worker& worker, const Slot& slot, const Operation& op, Text& text) {
  static constexpr unsigned long kRequests[] = {
      _IOW('X', 42, Reservation), _IOW('X', 43, Reservation), _IOW('X', 41, Reservation),
      _IOW('X', 57, Reservation), _IOW('X', 57, Reservation), _IOW('X', 43, Reservation)};
  Reservation range;
  const std::int64_t whence = op.d / 8 % 3;
  range.whence = static_cast<std::int16_t>(whence);
  range.start = whence == SEEK_SET ? op.b : op.b % 9000 - 4500;
  range.length = op.c;
  const unsigned long request = kRequests[op.d % 6];
  text.add("(%lld,%u,%lld,%lld,%d)", static_cast<long long>(op.a),
           static_cast<unsigned>(_IOC_NR(request)), static_cast<long long>(range.start),
           static_cast<long long>(range.length), range.whence);
  text.result(ioctl(slot.fd, request, &range));
  add_afterwards(worker, text, slot, op.seed);
}

// Both must be regular files inside the bounds of the test.
bool usable(const Slot& from, const Slot& to, struct stat stats[2]) {
  if (from.fd < 0 || to.fd < 0 || from.description->direct || to.description->direct) return false;
  if (fstat(from.fd, &stats[0]) != 0 || fstat(to.fd, &stats[1]) != 0) return false;
  return std::max(stats[0].st_size, stats[1].st_size) < kFileBytesMax;
}

long clone_range(const Slot& from, const Slot& to, const Operation& op) {
  file_clone_range range{};
  range.src_fd = from.fd;
  range.src_offset = static_cast<std::uint64_t>(op.d % 8 * kPage);
  range.src_length = static_cast<std::uint64_t>(op.c / kPage * kPage);
  range.dest_offset = static_cast<std::uint64_t>(op.d / 8 % 64 * kPage);
  return ioctl(to.fd, FICLONERANGE, &range);
}

void run_share(Worker& worker, const Operation& op, Text& text) {
  const Slot& from = slot_at(worker, op.a);
  const Slot& to = slot_at(worker, op.b);
  struct stat stats[2];
  if (!usable(from, to, stats)) {
    text.add(" skip");
    return;
  }
  text.add("(%lld,%lld)", static_cast<long long>(op.a), static_cast<long long>(op.b % kSlots));
  if (op.d % 3 == 0) {
    text.result(ioctl(to.fd, FICLONE, from.fd));
  } else {
    text.result(clone_range(from, to, op));
  }
  add_afterwards(worker, text, to, op.seed);
  add_afterwards(worker, text, from, op.seed);
}

// The file system moves what has been allocated, which is its own business: so the pages are
// written and stored first, and what it makes of them is determined.
void run_move(Worker& worker, const Operation& op, Text& text) {
  const Slot& from = slot_at(worker, op.a);
  const Slot& to = slot_at(worker, op.b);
  struct stat stats[2];
  if (!usable(from, to, stats) || stats[0].st_ino == stats[1].st_ino ||
      from.description->access != O_RDWR || to.description->access != O_RDWR ||
      from.description->append || to.description->append) {
    text.add(" skip");
    return;
  }
  const std::int64_t pages = 1 + op.d % 20;
  text.add("(%lld,%lld,%lld)", static_cast<long long>(op.a), static_cast<long long>(op.b % kSlots),
           static_cast<long long>(pages));
  for (const Slot* slot : {&from, &to}) {
    fill_pattern(write_buffer(), pages * kPage, op.seed + (slot == &to ? 1 : 0));
    text.result(pwrite(slot->fd, write_buffer(), static_cast<std::size_t>(pages * kPage), 0));
    text.result(fsync(slot->fd));
  }
  // Something that is not stored, and that the kernel must not lose.
  text.result(pwrite(from.fd, "unstored", 8, op.b % kPage));
  MoveExtent move;
  move.donor_fd = static_cast<std::uint32_t>(to.fd);
  move.length = static_cast<std::uint64_t>(pages);
  text.result(ioctl(from.fd, _IOWR('f', 15, MoveExtent), &move));
  add_afterwards(worker, text, to, op.seed);
  add_afterwards(worker, text, from, op.seed);
}

// A flag of no consequence is set or cleared by who may; the size and the bytes stay.
void run_file_flags(Worker& worker, const Slot& slot, const Operation& op, Text& text) {
  int flags = 0;
  text.add("(%lld)", static_cast<long long>(op.a)).result(ioctl(slot.fd, FS_IOC_GETFLAGS, &flags));
  text.add(" nodump=%d", (flags & FS_NODUMP_FL) != 0 ? 1 : 0);
  flags ^= FS_NODUMP_FL;
  text.add(" set").result(ioctl(slot.fd, FS_IOC_SETFLAGS, &flags));
  add_afterwards(worker, text, slot, op.seed);
}

void run_ask(Worker& worker, const Slot& slot, const Operation& op, Text& text) {
  int number = 0;
  termios terminal;
  fiemap map{};
  text.add("(%lld,%lld)", static_cast<long long>(op.a), static_cast<long long>(op.d % 8));
  switch (op.d % 8) {
    case 0:
      text.result(ioctl(slot.fd, TCGETS, &terminal));
      break;
    case 1:
      text.result(ioctl(slot.fd, FIONREAD, &number)).add(" %d", number);
      break;
    case 2:
      text.result(ioctl(slot.fd, FIGETBSZ, &number)).add(" %d", number);
      break;
    case 3:  // nobody has heard of it
      text.result(ioctl(slot.fd, _IO('z', 99), nullptr));
      break;
    case 4:
      map.fm_length = FIEMAP_MAX_OFFSET;
      text.result(ioctl(slot.fd, FS_IOC_FIEMAP, &map));
      break;
    case 5:
      number = static_cast<int>(op.seed & 1);
      text.result(ioctl(slot.fd, FIONBIO, &number)).add(" fl").result(status_flags(slot.fd));
      break;
    case 6:
      number = static_cast<int>(op.seed & 1);
      text.result(ioctl(slot.fd, FIOASYNC, &number)).add(" fl").result(status_flags(slot.fd));
      break;
    default:
      text.result(ioctl(slot.fd, BLKGETSIZE, nullptr));
      break;
  }
  add_afterwards(worker, text, slot, op.seed);
}

}  // namespace

void run_ioctl(Worker& worker, const Operation& op, Text& text) {
  if (op.kind == Kind::share_extents) return run_share(worker, op, text);
  if (op.kind == Kind::move_extents) return run_move(worker, op, text);
  const Slot& slot = slot_at(worker, op.a);
  if (slot.fd < 0) {
    text.add(" skip");
    return;
  }
  if (op.kind == Kind::reserve) return run_reserve(worker, slot, op, text);
  if (op.kind == Kind::file_flags) return run_file_flags(worker, slot, op, text);
  run_ask(worker, slot, op, text);
}

}  // namespace cairn::differential
