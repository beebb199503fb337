// SPDX-License-Identifier: Apache-2.0
#include "memory/arena/shared_segment.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>

#include <string>

#include "base/check.h"
#include "base/system_call.h"

namespace cairn {
namespace {

constexpr std::size_t kHugePageBytes = 2 * 1024 * 1024;
// Behind each mapping: nothing, as much as a block has. A length that somebody has scribbled makes
// an operation of the kernel fail there, instead of taking it into whatever is mapped next.
constexpr std::size_t kGuardBytes = 64 * 1024;

constexpr std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Maps `fd` at an address aligned to a huge page: without the alignment no huge page can back the
// mapping.
std::byte* map_aligned(int fd, std::size_t size_bytes) {
  const std::size_t reserve_bytes = size_bytes + kHugePageBytes + kGuardBytes;
  void* reserved = sys::mmap(nullptr, reserve_bytes, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (sys::is_error(reserved)) return nullptr;
  const auto start = reinterpret_cast<std::uintptr_t>(reserved);
  const std::uintptr_t aligned = round_up(start, kHugePageBytes);
  void* mapped = sys::mmap(reinterpret_cast<void*>(aligned), size_bytes, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);
  if (sys::is_error(mapped)) {
    sys::munmap(reserved, reserve_bytes);
    return nullptr;
  }
  if (aligned > start) sys::munmap(reserved, aligned - start);
  const std::uintptr_t end = aligned + size_bytes + kGuardBytes;
  const std::size_t tail = start + reserve_bytes - end;
  if (tail > 0) sys::munmap(reinterpret_cast<void*>(end), tail);
  // A core dump of the application must not carry the whole tier with it.
  sys::madvise(mapped, size_bytes, MADV_DONTDUMP);
  return static_cast<std::byte*>(mapped);
}

int create_memory_file(const char* name, unsigned flags) {
  return static_cast<int>(
      sys::call(SYS_memfd_create, sys::word(name), static_cast<long>(flags | MFD_ALLOW_SEALING)));
}

// The size of a memory file never changes: every process that touches what somebody has cut off
// would end, the service first. 0 or -errno.
int seal(int fd) { return sys::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL); }

// For attach() to close: the service sends the other one to those who attach.
int duplicate(int fd) { return sys::fcntl(fd, F_DUPFD_CLOEXEC, 0); }

}  // namespace

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      fd_(std::exchange(other.fd_, -1)),
      huge_pages_(other.huge_pages_) {}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  if (this != &other) {
    release();
    base_ = std::exchange(other.base_, nullptr);
    size_bytes_ = std::exchange(other.size_bytes_, 0);
    fd_ = std::exchange(other.fd_, -1);
    huge_pages_ = other.huge_pages_;
  }
  return *this;
}

SharedSegment::~SharedSegment() { release(); }

void SharedSegment::release() {
  if (base_ != nullptr) sys::munmap(base_, size_bytes_ + kGuardBytes);
  if (fd_ >= 0) sys::close(fd_);
  base_ = nullptr;
  fd_ = -1;
}

Result<SharedSegment> SharedSegment::create(const char* name, std::size_t size_bytes,
                                            HugePages huge_pages) {
  const std::size_t size = round_up(size_bytes, kHugePageBytes);
  CAIRN_CHECK(size != 0 && size >= size_bytes);
  if (huge_pages == HugePages::kReserved) {
    const int fd = create_memory_file(name, MFD_CLOEXEC | MFD_HUGETLB);
    if (fd >= 0) {
      // fallocate takes the reservation now: a page that is missing later would be a SIGBUS in the
      // application.
      const bool reserved = sys::ftruncate(fd, static_cast<off_t>(size)) == 0 &&
                            sys::fallocate(fd, 0, 0, static_cast<off_t>(size)) == 0 &&
                            seal(fd) == 0;
      if (reserved) {
        Result<SharedSegment> segment = attach(duplicate(fd), size, HugePages::kReserved);
        if (!segment) {
          sys::close(fd);
        } else {
          segment.value().fd_ = fd;
        }
        return segment;
      }
      sys::close(fd);
    }
    huge_pages = HugePages::kAdvise;
  }
  const int fd = create_memory_file(name, MFD_CLOEXEC);
  if (fd < 0) return Status::from_errno(-fd, "cannot create the shared memory of the node");
  int error = sys::ftruncate(fd, static_cast<off_t>(size));
  if (error == 0) error = seal(fd);
  if (error < 0) {
    sys::close(fd);
    return Status::from_errno(-error, "cannot size the shared memory of the node");
  }
  Result<SharedSegment> segment = attach(duplicate(fd), size, huge_pages);
  if (!segment) {
    sys::close(fd);
  } else {
    segment.value().fd_ = fd;
  }
  return segment;
}

Result<SharedSegment> SharedSegment::attach(int fd, std::size_t size_bytes, HugePages huge_pages,
                                            Descriptor descriptor) {
  std::byte* base = map_aligned(fd, size_bytes);
  if (base == nullptr) {
    sys::close(fd);
    return Status(StatusCode::kExhausted, "cannot map " + std::to_string(size_bytes) +
                                              " bytes of shared memory (address space limit?)");
  }
  if (huge_pages == HugePages::kAdvise) sys::madvise(base, size_bytes, MADV_HUGEPAGE);
  if (descriptor == Descriptor::kKeep) return SharedSegment(base, size_bytes, fd, huge_pages);
  sys::close(fd);
  return SharedSegment(base, size_bytes, -1, huge_pages);
}

void SharedSegment::populate(std::size_t offset, std::size_t length) const {
  CAIRN_DCHECK(base_ != nullptr && offset <= size_bytes_ && length <= size_bytes_ - offset);
#ifndef MADV_POPULATE_WRITE
  // Linux 5.14; Debian 12's libc headers have it, older ones do not
  constexpr int MADV_POPULATE_WRITE = 23;
#endif
  sys::madvise(base_ + offset, length, MADV_POPULATE_WRITE);
}

}  // namespace cairn
