// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/kernel_offset.h"

#include <errno.h>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/files/direct_io.h"
#include "frontends/files/through_mode.h"
#include "memory/buffer/kernel_use.h"

namespace cairn {
namespace {

using Call = ssize_t (*)(int fd, const iovec* parts, int count);
using Rule = bool (*)(OpenFile& file, const iovec* parts, int count, std::uint64_t offset);

// A call on the backing file itself, unless the rules of O_DIRECT refuse it.
ssize_t call_kernel(FileUse& use, const iovec* parts, int count, Rule is_refused, Call call) {
  if (!use.begin()) return -EBADF;
  OpenFile& file = use.file();
  const off_t offset = sys::lseek(file.shared_fd(), 0, SEEK_CUR);
  if (offset < 0) return offset;
  if (is_refused(file, parts, count, static_cast<std::uint64_t>(offset))) return -EINVAL;
  ThroughMode through;
  if (const int error = through.enter(file); error < 0) return error;
  return call(file.shared_fd(), parts, count);
}

}  // namespace

bool is_offset_moved_by_kernel(Actor& actor, OpenFile& file) {
  if (!file.is_offset_in_kernel()) return false;
  end_abandoned_through(access_of(actor, file));
  return actor.object(file.object).through.load(std::memory_order_seq_cst) != 0;
}

ssize_t read_at_kernel_offset(Actor& actor, FileUse& use, const iovec* parts, int count) {
  CAIRN_DCHECK(use.file().is_offset_in_kernel());
  CAIRN_DCHECK(use.file().description->offset_lock.holder() == actor.self);
  const ssize_t got = call_kernel(use, parts, count, is_refused_read, sys::readv);
  actor.count(Counter::kReads, 1);
  if (got <= 0) return got;
  actor.count(Counter::kReadBytes, static_cast<std::uint64_t>(got));
  actor.count(Counter::kMissBytes, static_cast<std::uint64_t>(got));
  return got;
}

ssize_t write_at_kernel_offset(Actor& actor, FileUse& use, const iovec* parts, int count) {
  CAIRN_DCHECK(use.file().is_offset_in_kernel());
  CAIRN_DCHECK(use.file().description->offset_lock.holder() == actor.self);
  const ssize_t put = call_kernel(use, parts, count, is_refused_write, sys::writev);
  actor.count(Counter::kWrites, 1);
  if (put <= 0) return put;
  actor.count(Counter::kWriteBytes, static_cast<std::uint64_t>(put));
  actor.count(Counter::kWriteThroughBytes, static_cast<std::uint64_t>(put));
  return store_if_promised(use.access(actor), put);
}

}  // namespace cairn
