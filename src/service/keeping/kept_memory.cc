// SPDX-License-Identifier: Apache-2.0
#include "service/keeping/kept_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cairn::node {

KeptMemory::~KeptMemory() {
  if (base_ != nullptr) ::munmap(base_, kBytes);
  if (fd_ >= 0) ::close(fd_);
}

Result<KeptMemory> KeptMemory::create() {
  const int fd = ::memfd_create("cairn-kept", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // A process that finds the file under /proc cannot shrink it under the service.
  if (fd < 0 || ::ftruncate(fd, kBytes) != 0 ||
      ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    const int error = errno;
    if (fd >= 0) ::close(fd);
    return Status::from_errno(error, "no memory for what a service leaves");
  }
  return open(fd);
}

Result<KeptMemory> KeptMemory::open(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0 || status.st_size != static_cast<off_t>(kBytes))
    return Status(StatusCode::kIncompatible, "this is not what a service has left");
  KeptMemory memory;
  memory.fd_ = fd;
  void* base = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) return Status::from_errno(errno, "no memory for what a service leaves");
  memory.base_ = static_cast<std::byte*>(base);
  return memory;
}

std::byte* KeptMemory::take_bytes(std::size_t value_bytes, std::size_t count) {
  CAIRN_CHECK(base_ != nullptr);
  constexpr std::size_t kUnit = alignof(Seal);
  const std::size_t bytes = (value_bytes * count + kUnit - 1) / kUnit * kUnit;
  CAIRN_CHECK(taken_ + sizeof(Seal) + bytes <= kBytes);
  auto* seal = reinterpret_cast<Seal*>(base_ + taken_);
  const bool is_first = seal->value_bytes == 0;
  if (is_first) *seal = Seal{value_bytes, count};
  CAIRN_CHECK(seal->value_bytes == value_bytes && seal->count == count);
  std::byte* piece = base_ + taken_ + sizeof(Seal);
  taken_ += sizeof(Seal) + bytes;
  return piece;
}

}  // namespace cairn::node
