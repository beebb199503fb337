// SPDX-License-Identifier: Apache-2.0
// What stands behind an object: where bytes come from on a miss and go on a flush.
//
//   PosixBacking   a file, as one process has it open          posix_backing.h
//   RegionBacking  a chunk of an array, as its reader has just made it   region_backing.h
//   NoBacking      nothing: reads zeros, takes no bytes        no_backing.h
//   FaultyBacking  another backing that fails as a test says   testing/faulty_backing.h
//
// A file at another node is to be one more. backing_test.cc has the suite
// that each of them passes.
//
// Results are a byte count or 0, or -errno. A read is short only at the end. A call never says that
// it has bytes which it has not: what a backing cannot keep it refuses, so that the blocks stay
// dirty (invariant 3).
//
// Cost: a virtual call, which a miss and a flush pay and a hit does not; descriptor() is none.
//
// Thread safety: any thread. Ownership: of what a backing works on, see each of them.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/object_key.h"

namespace cairn {

struct StoreStatus {
  ObjectKey key;
  StoreStamp stamp;
  std::uint32_t mode = 0;
  std::uint32_t links = 0;
  std::uint64_t attributes = 0;  // STATX_ATTR_*

  // The kernel looks at each write of such a file, or takes bits of its mode away with it.
  bool is_guarded() const;
};

// How much a sync() waits for.
enum class SyncDepth : std::uint8_t {
  kData,  // the bytes, and what is needed to find them
  kAll,   // times and mode as well
};

class Backing {
 public:
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;

  // The kernel's descriptor of what is behind, for those who hand it to another process or name it
  // in an event. -1: the kernel has none.
  int descriptor() const { return descriptor_; }
  // Whether bytes can be put anywhere through it.
  virtual bool is_writable() const = 0;

  // Reads at most `length` bytes; fewer only at the end. -EBADF when it may not be read.
  virtual ssize_t read(std::uint64_t offset, void* buffer, std::size_t length) = 0;
  // The same in one operation, which may end sooner: at the end of the caller's memory, for one.
  virtual ssize_t read_once(std::uint64_t offset, void* buffer, std::size_t length) = 0;
  // As read(), into several buffers. Changes `parts`.
  virtual ssize_t read_parts(std::uint64_t offset, std::span<iovec> parts) = 0;
  // These bytes will be read in several calls: a hint to bring all of them on their way at once.
  virtual void will_read(std::uint64_t /*offset*/, std::size_t /*length*/) {}

  // Writes all of it, or as much as there is room for: at least one byte, or -errno.
  virtual ssize_t write(std::uint64_t offset, const void* buffer, std::size_t length) = 0;
  // The same from several buffers in one operation, which may end sooner. Changes no part.
  virtual ssize_t write_once(std::uint64_t offset, std::span<const iovec> parts) = 0;
  // Writes behind the last byte, wherever that is by now, as much as is taken at once. `*offset`:
  // where that went.
  virtual ssize_t append(const void* buffer, std::size_t length, std::uint64_t* offset) = 0;

  virtual int status(StoreStatus* status) = 0;
  // What it grows by reads as zeros.
  virtual int truncate(std::uint64_t size) = 0;
  // truncate() to a size that it may have already, as the program's own call would do it.
  virtual int truncate_as_called(std::uint64_t size) { return truncate(size); }
  // fallocate(2).
  virtual int allocate(int mode, std::uint64_t offset, std::uint64_t length) = 0;
  virtual int set_mtime(std::int64_t mtime_ns) = 0;
  virtual int sync(SyncDepth depth) = 0;
  // Whether somebody has it open besides this, so that bytes may come and go past the buffers.
  virtual bool may_have_other_openers() const { return false; }

 protected:
  explicit Backing(int descriptor) : descriptor_(descriptor) {}
  ~Backing() = default;

  int descriptor_;
};

}  // namespace cairn
