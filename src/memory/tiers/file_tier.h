// SPDX-License-Identifier: Apache-2.0
// A tier in one preallocated pool file on a local device, read and written with direct I/O.
//
// Clients and the service use the same file by their own descriptors; a bucket's descriptor lock
// orders writes, and readers validate the bucket's sequence after their read, as in memory.
//
// Thread safety: stateless but for the descriptor. Ownership: closes its descriptor.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace cairn {

class FileTier {
 public:
  FileTier() = default;
  explicit FileTier(int fd) : fd_(fd) {}
  FileTier(FileTier&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileTier& operator=(FileTier&& other) noexcept;
  ~FileTier();

  // Creates a file without a name in `directory` and preallocates it. Other users of the directory
  // can neither make it beforehand nor open it; it vanishes with its last descriptor. Falls back to
  // buffered I/O where the file system has no direct I/O, and to a random name for an instant where
  // it has no unnamed files. Errors: kExhausted when the device has no room, kDenied (also for a
  // directory that open_safe_directory() refuses), kNotFound.
  static Result<FileTier> create(const std::string& directory, std::uint64_t capacity_bytes);

  // The same without taking the room before it is needed: the swap area, which may never be.
  static Result<FileTier> create_sparse(const std::string& directory, std::uint64_t capacity_bytes);

  // Whole pages at `offset`, both page-aligned like `buffer`. Returns 0 or -errno; a short transfer
  // is -EIO.
  int read_pages(std::uint64_t offset, void* buffer, std::size_t length) const;
  int write_pages(std::uint64_t offset, const void* buffer, std::size_t length) const;
  // The same with the bytes in several places.
  int read_parts(std::uint64_t offset, std::span<const iovec> parts) const;
  int write_parts(std::uint64_t offset, std::span<const iovec> parts) const;
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace cairn
