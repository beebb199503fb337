// SPDX-License-Identifier: Apache-2.0
#include "memory/backing/testing/faulty_backing.h"

#include <algorithm>

namespace cairn::testing {
namespace {

// The first parts, of at most so many bytes together.
std::vector<iovec> cut(std::span<const iovec> parts, std::size_t bytes_max) {
  std::vector<iovec> first;
  for (const iovec& part : parts) {
    const std::size_t take = std::min(part.iov_len, bytes_max);
    if (take == 0 && part.iov_len != 0) break;
    first.push_back({part.iov_base, take});
    bytes_max -= take;
  }
  return first;
}

}  // namespace

void FaultyBacking::fail(BackingCall call, int error, unsigned first, unsigned times) {
  plans_.push_back({call, first, times, error});
}

void FaultyBacking::shorten(BackingCall call, std::size_t bytes_max, unsigned first,
                            unsigned times) {
  plans_.push_back({call, first, times, 0, bytes_max});
}

unsigned FaultyBacking::count(BackingCall call) const {
  return counts_[static_cast<std::size_t>(call)].load();
}

FaultyBacking::Fate FaultyBacking::next(BackingCall call) {
  const unsigned number = counts_[static_cast<std::size_t>(call)].fetch_add(1) + 1;
  Fate fate;
  for (const Plan& plan : plans_) {
    if (plan.call == call && number >= plan.first && number - plan.first < plan.times)
      fate = {-plan.error, plan.bytes_max};
  }
  return fate;
}

ssize_t FaultyBacking::read(std::uint64_t offset, void* buffer, std::size_t length) {
  const Fate fate = next(BackingCall::kRead);
  return fate.error != 0 ? fate.error
                         : other_.read(offset, buffer, std::min(length, fate.bytes_max));
}

ssize_t FaultyBacking::read_once(std::uint64_t offset, void* buffer, std::size_t length) {
  const Fate fate = next(BackingCall::kRead);
  return fate.error != 0 ? fate.error
                         : other_.read_once(offset, buffer, std::min(length, fate.bytes_max));
}

ssize_t FaultyBacking::read_parts(std::uint64_t offset, std::span<iovec> parts) {
  const Fate fate = next(BackingCall::kRead);
  if (fate.error != 0) return fate.error;
  std::vector<iovec> first = cut(parts, fate.bytes_max);
  return other_.read_parts(offset, first);
}

ssize_t FaultyBacking::write(std::uint64_t offset, const void* buffer, std::size_t length) {
  const Fate fate = next(BackingCall::kWrite);
  return fate.error != 0 ? fate.error
                         : other_.write(offset, buffer, std::min(length, fate.bytes_max));
}

ssize_t FaultyBacking::write_once(std::uint64_t offset, std::span<const iovec> parts) {
  const Fate fate = next(BackingCall::kWrite);
  if (fate.error != 0) return fate.error;
  return other_.write_once(offset, cut(parts, fate.bytes_max));
}

ssize_t FaultyBacking::append(const void* buffer, std::size_t length, std::uint64_t* offset) {
  const Fate fate = next(BackingCall::kAppend);
  return fate.error != 0 ? fate.error
                         : other_.append(buffer, std::min(length, fate.bytes_max), offset);
}

int FaultyBacking::status(StoreStatus* status) {
  const Fate fate = next(BackingCall::kStatus);
  return fate.error != 0 ? fate.error : other_.status(status);
}

int FaultyBacking::truncate(std::uint64_t size) {
  const Fate fate = next(BackingCall::kTruncate);
  return fate.error != 0 ? fate.error : other_.truncate(size);
}

int FaultyBacking::truncate_as_called(std::uint64_t size) {
  const Fate fate = next(BackingCall::kTruncate);
  return fate.error != 0 ? fate.error : other_.truncate_as_called(size);
}

int FaultyBacking::allocate(int mode, std::uint64_t offset, std::uint64_t length) {
  const Fate fate = next(BackingCall::kAllocate);
  return fate.error != 0 ? fate.error : other_.allocate(mode, offset, length);
}

int FaultyBacking::set_mtime(std::int64_t mtime_ns) {
  const Fate fate = next(BackingCall::kSetTime);
  return fate.error != 0 ? fate.error : other_.set_mtime(mtime_ns);
}

int FaultyBacking::sync(SyncDepth depth) {
  const Fate fate = next(BackingCall::kSync);
  return fate.error != 0 ? fate.error : other_.sync(depth);
}

}  // namespace cairn::testing
