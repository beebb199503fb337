// SPDX-License-Identifier: Apache-2.0
#include "memory/backing/testing/faulty_backing.h"

#include <algorithm>

#include "base/check.h"

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

ssize_t FaultyBacking::read(std::uint64_t offset, void* buffer, std::size_t length) {
  const FaultScript::Fate fate = next(BackingCall::kRead);
  return fate.error != 0 ? fate.error
                         : other_.read(offset, buffer, std::min(length, fate.bytes_max));
}

ssize_t FaultyBacking::read_once(std::uint64_t offset, void* buffer, std::size_t length) {
  const FaultScript::Fate fate = next(BackingCall::kRead);
  return fate.error != 0 ? fate.error
                         : other_.read_once(offset, buffer, std::min(length, fate.bytes_max));
}

ssize_t FaultyBacking::read_parts(std::uint64_t offset, std::span<iovec> parts) {
  const FaultScript::Fate fate = next(BackingCall::kRead);
  if (fate.error != 0) return fate.error;
  std::vector<iovec> first = cut(parts, fate.bytes_max);
  return other_.read_parts(offset, first);
}

ssize_t FaultyBacking::write(std::uint64_t offset, const void* buffer, std::size_t length) {
  const FaultScript::Fate fate = next(BackingCall::kWrite);
  const iovec part{const_cast<void*>(buffer), std::min(length, fate.bytes_max)};
  const bool does_nothing = fate.error != 0 && fate.bytes_max == 0;
  const ssize_t put = does_nothing ? 0 : other_.write(offset, buffer, part.iov_len);
  (void)noted(offset, std::span(&part, 1), put);
  return fate.error != 0 ? fate.error : put;
}

ssize_t FaultyBacking::write_once(std::uint64_t offset, std::span<const iovec> parts) {
  const FaultScript::Fate fate = next(BackingCall::kWrite);
  const std::vector<iovec> first = cut(parts, fate.bytes_max);
  const bool does_nothing = fate.error != 0 && fate.bytes_max == 0;
  const ssize_t put = does_nothing ? 0 : other_.write_once(offset, first);
  (void)noted(offset, first, put);
  return fate.error != 0 ? fate.error : put;
}

ssize_t FaultyBacking::append(const void* buffer, std::size_t length, std::uint64_t* offset) {
  const FaultScript::Fate fate = next(BackingCall::kAppend);
  if (fate.error != 0) return fate.error;
  const iovec part{const_cast<void*>(buffer), std::min(length, fate.bytes_max)};
  const ssize_t put = other_.append(buffer, part.iov_len, offset);
  return noted(*offset, std::span(&part, 1), put);
}

template <typename Call>
int FaultyBacking::unless_failed(BackingCall call, Call&& other) {
  const FaultScript::Fate fate = next(call);
  return fate.error != 0 ? fate.error : other();
}

int FaultyBacking::status(StoreStatus* status) {
  return unless_failed(BackingCall::kStatus, [&] { return other_.status(status); });
}

int FaultyBacking::truncate(std::uint64_t size) {
  return unless_failed(BackingCall::kTruncate, [&] { return cut_to(size, other_.truncate(size)); });
}

int FaultyBacking::truncate_as_called(std::uint64_t size) {
  return unless_failed(BackingCall::kTruncate,
                       [&] { return cut_to(size, other_.truncate_as_called(size)); });
}

int FaultyBacking::allocate(int mode, std::uint64_t offset, std::uint64_t length) {
  return unless_failed(BackingCall::kAllocate,
                       [&] { return other_.allocate(mode, offset, length); });
}

int FaultyBacking::set_mtime(std::int64_t mtime_ns) {
  return unless_failed(BackingCall::kSetTime, [&] { return other_.set_mtime(mtime_ns); });
}

// A write that meets a sync under way may be durable afterwards or not, so it counts as not.
int FaultyBacking::sync(SyncDepth depth) {
  std::size_t covered = 0;
  std::vector<std::byte> now;
  {
    const std::lock_guard lock(mutex_);
    if (forgetting_) covered = forgetting_->writes.size();
    if (forgetting_) now = content();
  }
  const int error = unless_failed(BackingCall::kSync, [&] { return other_.sync(depth); });
  const std::lock_guard lock(mutex_);
  if (error != 0 || !forgetting_) return error;
  auto& writes = forgetting_->writes;
  writes.erase(writes.begin(), writes.begin() + static_cast<std::ptrdiff_t>(covered));
  forgetting_->durable = std::move(now);
  return 0;
}

void FaultyBacking::begin_forgetting() {
  const std::lock_guard lock(mutex_);
  forgetting_.emplace(Forgetting{content(), {}});
}

void FaultyBacking::cut_power(RandomSource& random) {
  const std::lock_guard lock(mutex_);
  const std::vector<std::byte> left =
      survivors(std::move(forgetting_->durable), std::move(forgetting_->writes), random);
  CAIRN_CHECK(other_.truncate(0) == 0);
  if (!left.empty())
    CAIRN_CHECK(other_.write(0, left.data(), left.size()) == static_cast<ssize_t>(left.size()));
  forgetting_.reset();
}

ssize_t FaultyBacking::noted(std::uint64_t offset, std::span<const iovec> parts, ssize_t put) {
  const std::lock_guard lock(mutex_);
  if (!forgetting_ || put <= 0) return put;
  UnflushedWrite write{offset, {}};
  for (const iovec& part : parts) {
    const auto* bytes = static_cast<const std::byte*>(part.iov_base);
    write.bytes.insert(write.bytes.end(), bytes, bytes + part.iov_len);
  }
  write.bytes.resize(static_cast<std::size_t>(put));
  forgetting_->writes.push_back(std::move(write));
  return put;
}

int FaultyBacking::cut_to(std::uint64_t size, int error) {
  const std::lock_guard lock(mutex_);
  if (!forgetting_ || error != 0) return error;
  forgetting_->durable.resize(size);
  std::vector<UnflushedWrite>& writes = forgetting_->writes;
  std::erase_if(writes, [size](const UnflushedWrite& write) { return write.offset >= size; });
  for (UnflushedWrite& write : writes) {
    if (write.offset + write.bytes.size() > size) write.bytes.resize(size - write.offset);
  }
  return 0;
}

std::vector<std::byte> FaultyBacking::content() {
  StoreStatus status;
  CAIRN_CHECK(other_.status(&status) == 0);
  std::vector<std::byte> bytes(status.stamp.size);
  CAIRN_CHECK(other_.read(0, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  return bytes;
}

}  // namespace cairn::testing
