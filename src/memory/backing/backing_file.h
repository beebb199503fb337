// SPDX-License-Identifier: Apache-2.0
// The backing store's file behind an object, as one process has it open.
//
// Thread safety: any thread; the readable descriptor is opened at most once.
// Ownership: `fd` belongs to the caller; a descriptor opened here for reading is closed by
// close_extra(). No descriptor of the file is ever closed while the file is open otherwise: closing
// one would drop the process's POSIX locks on it (fcntl(2)).
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "memory/catalog/object_table.h"

namespace cairn {

struct StoreStatus {
  FileKey key;
  StoreStamp stamp;
  std::uint32_t mode = 0;
  std::uint32_t links = 0;
  std::uint64_t attributes = 0;  // STATX_ATTR_*

  // The kernel looks at each write of such a file, or takes bits of its mode away with it.
  bool is_guarded() const;
};

class BackingFile {
 public:
  BackingFile() = default;
  // `flags` are those of the open description; of an appending one, O_APPEND must be among them.
  BackingFile(int fd, int flags) : fd_(fd), flags_(flags) {}

  int fd() const { return fd_; }
  // Whether bytes can be put anywhere through it: an appending description puts all of them at the
  // end.
  bool is_writable() const;
  // Reads at most `length` bytes; fewer only at the end of the file. -errno on failure; -EBADF when
  // the file was opened for writing only and may not be read.
  ssize_t read(std::uint64_t offset, void* buffer, std::size_t length);
  // The same into several buffers, in one operation. Changes `parts`.
  ssize_t read_parts(std::uint64_t offset, std::span<iovec> parts);
  // Writes everything or returns -errno.
  ssize_t write(std::uint64_t offset, const void* buffer, std::size_t length) const;
  // Writes behind the last byte, wherever the kernel finds that, as much as it takes at once.
  // `*offset`: where that went.
  ssize_t append(const void* buffer, std::size_t length, std::uint64_t* offset) const;
  // 0 or -errno.
  int status(StoreStatus* status) const;
  int truncate(std::uint64_t size) const;
  // truncate() of a file whose size in the store is the program's. Some file systems leave the
  // times of a file alone that has the size already, when it is given by name (truncate(2)).
  int truncate_as_called(std::uint64_t size) const;
  void called_by_name() { is_called_by_name_ = true; }
  int set_mtime(std::int64_t mtime_ns) const;
  void close_extra();

  // From here on no descriptor that was opened for reading is exchanged for one with a higher
  // number, because closing the first would drop the POSIX locks that this process has on the file.
  static void keep_first_descriptors() { keeps_first_.store(true, std::memory_order_relaxed); }

 private:
  int readable_fd();

  static inline std::atomic<bool> keeps_first_{false};

  int fd_ = -1;
  int flags_ = 0;
  bool is_called_by_name_ = false;
  std::atomic<int> extra_fd_{-1};
};

// The same for a descriptor without a BackingFile around it (service, stat).
int store_status(int fd, StoreStatus* status);
int store_status_at(int directory, const char* path, int flags, StoreStatus* status);

}  // namespace cairn
