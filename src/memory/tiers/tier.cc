// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/tier.h"

#include <errno.h>

#include "base/check.h"
#include "base/clock.h"
#include "memory/tiers/failure_board.h"

namespace cairn {
namespace {

// What direct I/O asks for, and as many bytes as the extent has.
[[maybe_unused]] bool are_aligned(TierExtent extent, std::span<const iovec> parts) {
  std::size_t length = 0;
  for (const iovec& part : parts) {
    if ((reinterpret_cast<std::uintptr_t>(part.iov_base) | part.iov_len) % kPageBytes != 0)
      return false;
    length += part.iov_len;
  }
  return extent.is_whole_pages() && length == extent.length;
}

}  // namespace

int Tier::read_parts(TierExtent extent, std::span<const iovec> parts) const {
  CAIRN_DCHECK(has(extent));
  CAIRN_DCHECK(are_aligned(extent, parts));
  if (__builtin_expect(hangs(), 0)) return -ETIMEDOUT;
  return note_result(TierOperation::kRead, extent, do_read(extent, parts));
}

int Tier::fetch_parts(TierExtent extent, std::span<const iovec> parts) const {
  CAIRN_DCHECK(has(extent));
  CAIRN_DCHECK(are_aligned(extent, parts));
  if (__builtin_expect(hangs(), 0)) return -ETIMEDOUT;
  return note_result(TierOperation::kRead, extent, do_fetch(extent, parts));
}

int Tier::check_parts(TierExtent extent, std::span<const iovec> parts) const {
  CAIRN_DCHECK(has(extent));
  return do_agree(extent, parts) ? 0 : -EBADMSG;
}

int Tier::write_parts(TierExtent extent, std::span<const iovec> parts) const {
  CAIRN_DCHECK(has(extent));
  CAIRN_DCHECK(are_aligned(extent, parts));
  if (__builtin_expect(hangs(), 0)) return -ETIMEDOUT;
  return note_result(TierOperation::kWrite, extent, do_write(extent, parts));
}

bool Tier::hangs() const { return record_.board != nullptr && record_.board->hangs(record_.tier); }

int Tier::note_hang() const {
  if (record_.board != nullptr) record_.board->note_hang(record_.tier, monotonic_coarse_ms());
  return -ETIMEDOUT;
}

int Tier::note_result(TierOperation operation, TierExtent extent, int error) const {
  if (__builtin_expect(error >= 0, 1) || record_.board == nullptr) return error;
  const bool is_expected = record_.may_lack_room && (error == -ENOSPC || error == -EDQUOT);
  if (!FailureBoard::is_of_device(error) || is_expected) return error;
  if (operation == TierOperation::kRead) {
    record_.board->note_read(record_.tier, extent.offset, error, monotonic_coarse_ms());
  } else {
    record_.board->note_write(record_.tier, error, monotonic_coarse_ms());
  }
  return error;
}

int Tier::read_pages(TierExtent extent, void* out) const {
  const iovec part{out, extent.length};
  return read_parts(extent, std::span(&part, 1));
}

int Tier::write_pages(TierExtent extent, const void* in) const {
  const iovec part{const_cast<void*>(in), extent.length};
  return write_parts(extent, std::span(&part, 1));
}

int Tier::peek_pages(TierExtent extent, void* out) const {
  const iovec part{out, extent.length};
  CAIRN_DCHECK(has(extent));
  if (__builtin_expect(hangs(), 0)) return -ETIMEDOUT;
  const int error = do_read(extent, std::span(&part, 1));
  return error == -EBADMSG ? error : note_result(TierOperation::kRead, extent, error);
}

int copy_place(const TierPlace& from, const TierPlace& to) {
  CAIRN_DCHECK(from.extent.length == to.extent.length);
  if (const std::byte* bytes = from.address(); bytes != nullptr) return to.write(bytes);
  std::byte* const bytes = to.address();
  CAIRN_DCHECK(bytes != nullptr);
  return from.read(bytes);
}

}  // namespace cairn
