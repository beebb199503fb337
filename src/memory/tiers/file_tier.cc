// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/file_tier.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "base/check.h"
#include "base/ids.h"
#include "base/private_file.h"
#include "base/system_call.h"

namespace cairn {
namespace {

// The kernel does a part of a request only where something is wrong, so the rest is tried alone.
int read_all(int fd, std::byte* out, std::size_t length, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < length) {
    const ssize_t got =
        sys::pread(fd, out + done, length - done, static_cast<off_t>(offset + done));
    if (got == -EINTR) continue;
    if (got <= 0) return got == 0 ? -EIO : static_cast<int>(got);
    done += static_cast<std::size_t>(got);
  }
  CAIRN_DCHECK(done == length);
  return 0;
}

int write_all(int fd, const std::byte* in, std::size_t length, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < length) {
    const ssize_t put =
        sys::pwrite(fd, in + done, length - done, static_cast<off_t>(offset + done));
    if (put == -EINTR) continue;
    if (put <= 0) return put == 0 ? -EIO : static_cast<int>(put);
    done += static_cast<std::size_t>(put);
  }
  CAIRN_DCHECK(done == length);
  return 0;
}

int open_pool(int directory) {
  const int fd = open_unnamed_file(directory, O_DIRECT);
  return fd == -EINVAL ? open_unnamed_file(directory, 0) : fd;
}

// Length, room and superblock of a new pool file. 0 or -errno.
int fill_pool(int fd, const PoolIdentity& identity, FileTier::Room room) {
  const auto bytes = static_cast<off_t>(identity.file_bytes());
  int error = room == FileTier::Room::kTaken ? sys::fallocate(fd, 0, 0, bytes) : -EOPNOTSUPP;
  if (error == -EOPNOTSUPP) error = sys::ftruncate(fd, bytes);
  if (error < 0) return error;
  const PoolPage superblock = make_superblock(identity);
  error = write_all(fd, superblock.bytes.data(), superblock.bytes.size(), 0);
  // Nobody opens a file again that takes its room when it is needed, and a full store may have some
  // by then.
  const bool lacks_room = error == -ENOSPC || error == -EDQUOT;
  return lacks_room && room == FileTier::Room::kWhenNeeded ? 0 : error;
}

}  // namespace

FileTier::FileTier(FileTier&& other) noexcept
    : Tier(other),
      fd_(std::exchange(other.fd_, -1)),
      capacity_bytes_(std::exchange(other.capacity_bytes_, 0)),
      sums_(std::exchange(other.sums_, PageSums())) {}

FileTier& FileTier::operator=(FileTier&& other) noexcept {
  Tier::operator=(other);
  std::swap(fd_, other.fd_);
  std::swap(capacity_bytes_, other.capacity_bytes_);
  std::swap(sums_, other.sums_);
  return *this;
}

FileTier::~FileTier() {
  if (fd_ >= 0) sys::close(fd_);
}

Result<FileTier> FileTier::create(const std::string& directory, const PoolIdentity& identity,
                                  Room room) {
  CAIRN_CHECK(identity.bucket_count != 0);
  const Result<int> place = open_safe_directory(directory);
  if (!place) return Status(place.status().code(), "no pool file: " + place.status().message());
  const int fd = open_pool(*place);
  sys::close(*place);
  if (fd < 0) return Status::from_errno(-fd, "cannot create a pool file in " + directory);
  FileTier tier(fd, identity.data_bytes());
  const int error = fill_pool(fd, identity, room);
  if (error < 0)
    return Status::from_errno(-error, "cannot make room for a pool file in " + directory);
  if (room == Room::kWhenNeeded) return tier;
  if (const Status status = tier.check(identity); !status)
    return Status(status.code(), "the new pool file in " + directory + " " + status.message());
  return tier;
}

Status FileTier::check(const PoolIdentity& expected) const {
  struct statx status{};
  const int seen = sys::statx(fd_, "", AT_EMPTY_PATH, STATX_SIZE, &status);
  if (seen < 0) return Status::from_errno(-seen, "cannot be looked at");
  if (status.stx_size < kPageBytes) return {StatusCode::kInvalid, "is no pool file"};
  PoolPage page;
  const int error = read_all(fd_, page.bytes.data(), page.bytes.size(), 0);
  if (error < 0) return Status::from_errno(-error, "cannot be read");
  CAIRN_RETURN_IF_ERROR(check_superblock(page, expected));
  if (status.stx_size < expected.file_bytes()) return {StatusCode::kInvalid, "is cut off"};
  return Status::ok();
}

// A request that one call does not do wholly is rare, and done part by part: it is the same bytes
// again.
int FileTier::read_device(TierExtent extent, std::span<const iovec> parts) const {
  std::uint64_t offset = on_device(extent).offset;
  const ssize_t got =
      sys::preadv(fd_, parts.data(), static_cast<int>(parts.size()), static_cast<off_t>(offset));
  if (got == static_cast<ssize_t>(extent.length)) return 0;
  for (const iovec& part : parts) {
    const int error = read_all(fd_, static_cast<std::byte*>(part.iov_base), part.iov_len, offset);
    if (error < 0) return error;
    offset += part.iov_len;
  }
  return 0;
}

int FileTier::write_device(TierExtent extent, std::span<const iovec> parts) const {
  std::uint64_t offset = on_device(extent).offset;
  const ssize_t put =
      sys::pwritev(fd_, parts.data(), static_cast<int>(parts.size()), static_cast<off_t>(offset));
  if (put == static_cast<ssize_t>(extent.length)) return 0;
  for (const iovec& part : parts) {
    const int error =
        write_all(fd_, static_cast<const std::byte*>(part.iov_base), part.iov_len, offset);
    if (error < 0) return error;
    offset += part.iov_len;
  }
  return 0;
}

int FileTier::do_read(TierExtent extent, std::span<const iovec> parts) const {
  if (const int error = read_device(extent, parts); error < 0) return error;
  return sums_.agree(extent, parts) ? 0 : -EBADMSG;
}

int FileTier::do_write(TierExtent extent, std::span<const iovec> parts) const {
  sums_.forget(extent);
  if (const int error = write_device(extent, parts); error < 0) return error;
  sums_.note(extent, parts);
  return 0;
}

}  // namespace cairn
