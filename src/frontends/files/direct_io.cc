// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/direct_io.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/files/file_shape.h"
#include "frontends/libc/cancellation.h"

namespace cairn {
namespace {

// Disks with larger sectors want more, and so do some file systems, which take less nevertheless.
constexpr std::uint32_t kStrictest = 512;
// Newer kernels accept memory that is aligned less than they say they need.
constexpr std::uint32_t kStrictestOfMemory = 4;
static_assert((kStrictest & (kStrictest - 1)) == 0 && kStrictest % kStrictestOfMemory == 0);
constexpr std::uint64_t kAreKnown = std::uint64_t{1} << 63;

struct Rules {
  std::uint32_t memory = 1;
  std::uint32_t offset = 1;
  bool any() const { return offset > 1; }
};

std::uint64_t packed(const Rules& rules) {
  CAIRN_DCHECK(rules.offset != 0 && rules.offset <= kStrictest);
  CAIRN_DCHECK(rules.memory != 0 && rules.memory <= kStrictestOfMemory);
  return kAreKnown | std::uint64_t{rules.memory} << 32 | rules.offset;
}

Rules ask(const OpenFile& file) {
  Rules rules;
  struct ::statx status;
  if (sys::statx(file.private_fd(), "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) < 0) return rules;
  // 0: direct I/O is not supported on this file, and what asks for it is done otherwise.
  if ((status.stx_mask & STATX_DIOALIGN) == 0 || status.stx_dio_offset_align == 0) return rules;
  rules.memory = std::clamp<std::uint32_t>(status.stx_dio_mem_align, 1, kStrictestOfMemory);
  rules.offset = std::clamp<std::uint32_t>(status.stx_dio_offset_align, 1, kStrictest);
  return rules;
}

Rules rules_of(OpenFile& file) {
  if ((file.flags() & O_DIRECT) == 0) return Rules{};
  std::uint64_t known = file.direct_rules.load(std::memory_order_relaxed);
  if (known == 0) {
    known = packed(ask(file));
    file.direct_rules.store(known, std::memory_order_relaxed);
  }
  return Rules{static_cast<std::uint32_t>((known & ~kAreKnown) >> 32),
               static_cast<std::uint32_t>(known)};
}

std::uint64_t length_of(const iovec* parts, int count) {
  std::uint64_t total = 0;
  for (int at = 0; at < count; ++at) total += parts[at].iov_len;
  return total;
}

bool is_any_odd(const iovec* parts, int count, std::uint32_t alignment) {
  return std::any_of(parts, parts + count, [alignment](const iovec& part) {
    return reinterpret_cast<std::uintptr_t>(part.iov_base) % alignment != 0;
  });
}

}  // namespace

void note_direct_flag(OpenFile& file) {
  file.reads_plainly = file.may_read && (file.flags() & O_DIRECT) == 0 && !has_cancelled.load();
}

bool is_refused_read(OpenFile& file, const iovec* parts, int count, std::uint64_t offset) {
  const Rules rules = rules_of(file);
  if (!rules.any()) return false;
  const auto size = static_cast<std::uint64_t>(std::max<off_t>(0, file_size(file)));
  // Behind the end there is nothing to transfer, and the kernel cuts a length that passes the end
  // before it checks it.
  if (offset >= size) return false;
  const std::uint64_t length = length_of(parts, count);
  if (length == 0) return false;
  const bool is_within = offset + length <= size;
  if (offset % rules.offset != 0 || (is_within && length % rules.offset != 0)) return true;
  return is_any_odd(parts, count, rules.memory);
}

bool is_refused_write(OpenFile& file, const iovec* parts, int count, std::uint64_t offset) {
  const Rules rules = rules_of(file);
  if (!rules.any()) return false;
  const std::uint64_t length = length_of(parts, count);
  if (length == 0) return false;
  if ((file.flags() & O_APPEND) != 0)
    offset = static_cast<std::uint64_t>(std::max<off_t>(0, file_size(file)));
  return offset % rules.offset != 0 || length % rules.offset != 0 ||
         is_any_odd(parts, count, rules.memory);
}

}  // namespace cairn
