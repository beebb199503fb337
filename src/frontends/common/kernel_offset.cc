// SPDX-License-Identifier: Apache-2.0
#include "frontends/common/kernel_offset.h"

#include <errno.h>

#include "base/system_call.h"
#include "buffer/kernel_use.h"
#include "frontends/common/direct_io.h"
#include "frontends/common/through_mode.h"

namespace cairn {
namespace {

std::uint64_t kernel_offset(const OpenFile& file) {
  return static_cast<std::uint64_t>(sys::lseek(file.private_fd(), 0, SEEK_CUR));
}

}  // namespace

bool is_offset_moved_by_kernel(Actor& actor, OpenFile& file) {
  if (!file.is_offset_in_kernel()) return false;
  end_abandoned_through(access_of(actor, file));
  return actor.object(file.object).through.load(std::memory_order_seq_cst) != 0;
}

ssize_t read_at_kernel_offset(Actor& actor, OpenFile& file, const iovec* parts, int count) {
  if (is_refused_read(file, parts, count, kernel_offset(file))) return -EINVAL;
  ThroughMode through;
  if (const int error = through.enter(file); error < 0) return error;
  const ssize_t got = sys::readv(file.private_fd(), parts, count);
  actor.count(Counter::kReads, 1);
  if (got > 0) {
    actor.count(Counter::kReadBytes, static_cast<std::uint64_t>(got));
    actor.count(Counter::kMissBytes, static_cast<std::uint64_t>(got));
  }
  return got;
}

ssize_t write_at_kernel_offset(Actor& actor, OpenFile& file, const iovec* parts, int count) {
  if (is_refused_write(file, parts, count, kernel_offset(file))) return -EINVAL;
  ThroughMode through;
  if (const int error = through.enter(file); error < 0) return error;
  const ssize_t put = sys::writev(file.private_fd(), parts, count);
  actor.count(Counter::kWrites, 1);
  if (put > 0) {
    actor.count(Counter::kWriteBytes, static_cast<std::uint64_t>(put));
    actor.count(Counter::kWriteThroughBytes, static_cast<std::uint64_t>(put));
  }
  return put > 0 ? store_if_promised(access_of(actor, file), put) : put;
}

}  // namespace cairn
