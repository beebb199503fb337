// SPDX-License-Identifier: Apache-2.0
// The backing store's file behind an object, as one process has it open.
//
// Thread safety: any thread; the readable descriptor is opened at most once.
// Ownership: `fd` belongs to the caller; a descriptor opened here for reading is closed by
// close_extra(), or goes to another backing with give_extra_to().
#pragma once

#include <fcntl.h>

#include <atomic>
#include <type_traits>

#include "memory/backing/backing.h"
#include "memory/backing/other_openers.h"

namespace cairn {

// How a process opens and closes the descriptor that reads a file which is open for writing only.
// In a program it must be at a number that the program does not use, and closing any descriptor of
// a file drops the process's POSIX locks on it (fcntl(2)).
struct ReadingDescriptors {
  int (*open)(int fd);  // of the file behind `fd`; -errno
  void (*close)(int fd);
};

class PosixBacking final : public Backing {
 public:
  // No file at hand: every call fails with -EBADF.
  PosixBacking() : Backing(-1) {}
  // `flags` are those of the open description; of an appending one, O_APPEND must be among them.
  PosixBacking(int fd, int flags) : Backing(fd), flags_(flags) {}

  // An appending description puts all bytes at the end, so it counts as not writable.
  bool is_writable() const override;
  // -EBADF when the file was opened for writing only and may not be read.
  ssize_t read(std::uint64_t offset, void* buffer, std::size_t length) override;
  // Through the descriptor that the file was opened with.
  ssize_t read_once(std::uint64_t offset, void* buffer, std::size_t length) override;
  ssize_t read_parts(std::uint64_t offset, std::span<iovec> parts) override;
  void will_read(std::uint64_t offset, std::size_t length) override;
  ssize_t write(std::uint64_t offset, const void* buffer, std::size_t length) override;
  ssize_t write_once(std::uint64_t offset, std::span<const iovec> parts) override;
  ssize_t append(const void* buffer, std::size_t length, std::uint64_t* offset) override;
  int status(StoreStatus* status) override;
  // Also of a description for reading only, if the process may write the file: open(2) cuts one.
  int truncate(std::uint64_t size) override;
  // Some file systems leave the times of a file alone that has the size already, when it is given
  // by name (truncate(2)).
  int truncate_as_called(std::uint64_t size) override;
  int allocate(int mode, std::uint64_t offset, std::uint64_t length) override;
  int set_mtime(std::int64_t mtime_ns) override;
  int sync(SyncDepth depth) override;
  bool may_have_other_openers() const override {
    return cairn::may_have_other_openers(descriptor_);
  }

  // Other processes have the same description, past the buffers or not, and may give it flags with
  // which no byte goes to its place. Before each store such flags are taken away. From the moment
  // in which the first of them gets it.
  void note_shared() { is_shared_.store(true, std::memory_order_relaxed); }
  bool is_shared() const { return is_shared_.load(std::memory_order_relaxed); }

  void called_by_name(bool is_called) {
    is_called_by_name_.store(is_called, std::memory_order_relaxed);
  }
  // The descriptor that reads, opened now if need be; -errno.
  int readable_fd();
  // The one that was opened for that; -1: none.
  int extra_fd() const { return extra_fd_.load(std::memory_order_acquire); }
  void give_extra_to(PosixBacking& other) { other.extra_fd_ = extra_fd_.exchange(-1); }
  void close_extra();

  // For a process that has rules of its own. Before its first backing.
  static void open_to_read_with(const ReadingDescriptors& calls) { reading_ = calls; }

 private:
  static int open_to_read(int fd);
  static void close_after_reading(int fd);
  void take_flags_back() const;

  static inline constinit ReadingDescriptors reading_{open_to_read, close_after_reading};

  int flags_ = O_RDONLY;
  std::atomic<bool> is_called_by_name_{false};
  std::atomic<bool> is_shared_{false};
  std::atomic<int> extra_fd_{-1};
};
static_assert(std::is_trivially_destructible_v<PosixBacking>,
              "the record of an open file is never destroyed");

// The status of a file without a backing around it (service, stat).
int store_status(int fd, StoreStatus* status);
// The same as far as the kernel knows without asking the store, which may err or hang: the key and
// the type are right, the rest may be older.
int known_store_status(int fd, StoreStatus* status);
int store_status_at(int directory, const char* path, int flags, StoreStatus* status);

}  // namespace cairn
