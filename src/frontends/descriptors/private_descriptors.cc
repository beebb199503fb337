// SPDX-License-Identifier: Apache-2.0
#include "frontends/descriptors/private_descriptors.h"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/client/descriptor_floor.h"
#include "frontends/client/session.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file.h"

namespace cairn {
namespace {

constexpr int kMax = DescriptorTable::kDescriptorsMax;
static_assert(kMax % 64 == 0, "whole words of bits");
constinit std::atomic<std::uint64_t> private_bits[kMax / 64] = {};
constinit std::atomic<int> highest_private{-1};
constinit std::atomic<int> known_floor{0};
constinit std::atomic<bool> in_place_seen{false};

bool has_bit(int fd) {
  // A process without private descriptors leaves the pages of the table alone.
  if (fd < 0 || fd > highest_private.load(std::memory_order_relaxed)) return false;
  return (private_bits[fd / 64].load(std::memory_order_relaxed) >> (fd % 64) & 1) != 0;
}

}  // namespace

int PrivateDescriptors::make(int fd, bool close_on_exec) {
  const int command = close_on_exec ? F_DUPFD_CLOEXEC : F_DUPFD;
  int floor = known_floor.load(std::memory_order_relaxed);
  int made = floor == 0 ? -EINVAL : sys::fcntl(fd, command, floor);
  if (made == -EINVAL) {  // not known yet, or the process's limit fell below it
    floor = descriptor_floor();
    known_floor.store(floor, std::memory_order_relaxed);
    made = sys::fcntl(fd, command, floor);
  }
  if (made >= kMax) {  // the application could close it, because nobody would know whose it is
    sys::close(made);
    return -EMFILE;
  }
  if (made >= 0) add(made);
  CAIRN_DCHECK(made <= highest());
  return made;
}

void PrivateDescriptors::add(int fd) {
  if (fd < 0 || fd >= kMax) return;
  private_bits[fd / 64].fetch_or(std::uint64_t{1} << (fd % 64));
  int seen = highest_private.load(std::memory_order_relaxed);
  while (seen < fd && !highest_private.compare_exchange_weak(seen, fd)) {
  }
}

int PrivateDescriptors::highest() {
  return std::max(highest_private.load(std::memory_order_relaxed),
                  Session::instance().highest_descriptor());
}

void PrivateDescriptors::remove(int fd) {
  if (fd >= 0 && fd < kMax) private_bits[fd / 64].fetch_and(~(std::uint64_t{1} << (fd % 64)));
}

void PrivateDescriptors::set_survives_exec(const OpenFile& file, bool survives) {
  for (const int fd : file.real_fds()) {
    if (is_private(fd)) sys::fcntl(fd, F_SETFD, survives ? 0 : FD_CLOEXEC);
  }
}

bool PrivateDescriptors::is_private(int fd) {
  return has_bit(fd) || Session::instance().owns_descriptor(fd);
}

void PrivateDescriptors::note_file_in_place() {
  in_place_seen.store(true, std::memory_order_relaxed);
}

bool PrivateDescriptors::has_files_in_place() {
  return in_place_seen.load(std::memory_order_relaxed);
}

void update_close_on_exec(OpenFile& file) {
  if (!PrivateDescriptors::is_private(file.private_fd())) return;
  bool survives = false;
  DescriptorTable::for_each([&](int fd, OpenFile& other) {
    if (&other != &file) return;
    const int flags = sys::fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) survives = true;
  });
  PrivateDescriptors::set_survives_exec(file, survives);
}

}  // namespace cairn
