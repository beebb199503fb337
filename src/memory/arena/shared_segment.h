// SPDX-License-Identifier: Apache-2.0
// One shared-memory segment: an anonymous memory file that the node service creates and clients map
// by descriptor.
//
// A memfd and not a file on /dev/shm, because transparent huge pages by madvise reach only the
// kernel's internal shmem mount (measured: 10 to 25 % on every hit), and because containers often
// give /dev/shm 64 MiB.
//
// Thread safety: immutable after construction. Ownership: move-only; unmaps and closes on
// destruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/huge_pages.h"
#include "base/status.h"

namespace cairn {

class SharedSegment {
 public:
  SharedSegment() = default;
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();

  // Creates a zeroed segment of `size_bytes` (rounded up to 2 MiB). Memory is allocated when first
  // touched.
  // Errors: kExhausted when the address space or the reserved pages do not suffice.
  static Result<SharedSegment> create(const char* name, std::size_t size_bytes,
                                      HugePages huge_pages);

  // A client closes the descriptor when it has served: programs have few numbers to spare.
  enum class Descriptor : std::uint8_t { kClose, kKeep };
  // Maps a segment received by descriptor and takes ownership of `fd`. Requires: size from the
  // trusted handshake.
  static Result<SharedSegment> attach(int fd, std::size_t size_bytes, HugePages huge_pages,
                                      Descriptor descriptor = Descriptor::kClose);

  // Populates the page tables of [offset, offset + length) for writing in one call, so that the
  // copy that follows does not fault page by page. Best effort: older kernels ignore it.
  void populate(std::size_t offset, std::size_t length) const;

  std::byte* base() const { return base_; }
  std::size_t size_bytes() const { return size_bytes_; }
  int fd() const { return fd_; }
  HugePages huge_pages() const { return huge_pages_; }
  explicit operator bool() const { return base_ != nullptr; }

 private:
  SharedSegment(std::byte* base, std::size_t size_bytes, int fd, HugePages huge_pages)
      : base_(base), size_bytes_(size_bytes), fd_(fd), huge_pages_(huge_pages) {}
  void release();

  std::byte* base_ = nullptr;
  std::size_t size_bytes_ = 0;
  int fd_ = -1;
  HugePages huge_pages_ = HugePages::kNever;
};

}  // namespace cairn
