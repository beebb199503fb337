// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/file_tier.h"

#include <errno.h>
#include <fcntl.h>

#include <utility>

#include "base/check.h"
#include "base/ids.h"
#include "base/private_file.h"
#include "base/system_call.h"

namespace cairn {

FileTier& FileTier::operator=(FileTier&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileTier::~FileTier() {
  if (fd_ >= 0) sys::close(fd_);
}

namespace {

std::size_t length_of(std::span<const iovec> parts) {
  std::size_t length = 0;
  for (const iovec& part : parts) length += part.iov_len;
  return length;
}

// What direct I/O asks for. A bucket begins and ends with a page.
[[maybe_unused]] bool are_whole_pages(std::uint64_t offset, std::size_t length) {
  return length != 0 && (offset | length) % kPageBytes == 0;
}

enum class Room { kTaken, kWhenNeeded };

Result<int> create_pool(const std::string& directory, std::uint64_t capacity_bytes, Room room) {
  const Result<int> place = open_safe_directory(directory);
  if (!place) return Status(place.status().code(), "no pool file: " + place.status().message());
  int fd = open_unnamed_file(*place, O_DIRECT);
  if (fd == -EINVAL) fd = open_unnamed_file(*place, 0);
  sys::close(*place);
  if (fd < 0) return Status::from_errno(-fd, "cannot create a pool file in " + directory);
  const auto capacity = static_cast<off_t>(capacity_bytes);
  int error = room == Room::kTaken ? sys::fallocate(fd, 0, 0, capacity) : -EOPNOTSUPP;
  if (error == -EOPNOTSUPP) error = sys::ftruncate(fd, capacity);
  if (error == 0) return fd;
  sys::close(fd);
  return Status::from_errno(-error, "cannot preallocate a pool file in " + directory);
}

}  // namespace

Result<FileTier> FileTier::create(const std::string& directory, std::uint64_t capacity_bytes) {
  auto fd = create_pool(directory, capacity_bytes, Room::kTaken);
  if (!fd) return fd.status();
  return FileTier(*fd);
}

Result<FileTier> FileTier::create_sparse(const std::string& directory,
                                         std::uint64_t capacity_bytes) {
  auto fd = create_pool(directory, capacity_bytes, Room::kWhenNeeded);
  if (!fd) return fd.status();
  return FileTier(*fd);
}

int FileTier::read_pages(std::uint64_t offset, void* buffer, std::size_t length) const {
  CAIRN_DCHECK(are_whole_pages(offset, length));
  std::size_t done = 0;
  while (done < length) {
    const ssize_t got = sys::pread(fd_, static_cast<char*>(buffer) + done, length - done,
                                   static_cast<off_t>(offset + done));
    if (got == -EINTR) continue;
    if (got <= 0) return got == 0 ? -EIO : static_cast<int>(got);
    done += static_cast<std::size_t>(got);
  }
  return 0;
}

int FileTier::write_pages(std::uint64_t offset, const void* buffer, std::size_t length) const {
  CAIRN_DCHECK(are_whole_pages(offset, length));
  std::size_t done = 0;
  while (done < length) {
    const ssize_t put = sys::pwrite(fd_, static_cast<const char*>(buffer) + done, length - done,
                                    static_cast<off_t>(offset + done));
    if (put == -EINTR) continue;
    if (put <= 0) return put == 0 ? -EIO : static_cast<int>(put);
    done += static_cast<std::size_t>(put);
  }
  return 0;
}

// What one call does not do wholly is rare, and done part by part: it is the same bytes again.
int FileTier::read_parts(std::uint64_t offset, std::span<const iovec> parts) const {
  CAIRN_DCHECK(are_whole_pages(offset, length_of(parts)));
  const ssize_t got =
      sys::preadv(fd_, parts.data(), static_cast<int>(parts.size()), static_cast<off_t>(offset));
  if (got == static_cast<ssize_t>(length_of(parts))) return 0;
  for (const iovec& part : parts) {
    if (const int error = read_pages(offset, part.iov_base, part.iov_len); error < 0) return error;
    offset += part.iov_len;
  }
  return 0;
}

int FileTier::write_parts(std::uint64_t offset, std::span<const iovec> parts) const {
  CAIRN_DCHECK(are_whole_pages(offset, length_of(parts)));
  const ssize_t put =
      sys::pwritev(fd_, parts.data(), static_cast<int>(parts.size()), static_cast<off_t>(offset));
  if (put == static_cast<ssize_t>(length_of(parts))) return 0;
  for (const iovec& part : parts) {
    if (const int error = write_pages(offset, part.iov_base, part.iov_len); error < 0) return error;
    offset += part.iov_len;
  }
  return 0;
}

}  // namespace cairn
