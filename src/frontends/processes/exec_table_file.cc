// SPDX-License-Identifier: Apache-2.0
#include "frontends/processes/exec_table_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/client/descriptor_floor.h"

namespace cairn {
namespace {

constexpr char kMark = '@';
static_assert(kExecTableReferenceBytes >= 1 + 10 + 1, "the mark, a descriptor and the end");
constexpr long kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
// More than a process can have descriptors.
constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 27;

// -1 when the value is no reference.
int descriptor_in(const char* value) {
  if (*value++ != kMark || *value == '\0') return -1;
  int fd = 0;
  for (; *value >= '0' && *value <= '9' && fd < 1 << 24; ++value) fd = fd * 10 + (*value - '0');
  return *value == '\0' ? fd : -1;
}

void write_reference(int fd, char* out) {
  CAIRN_DCHECK(fd >= 0);
  char digits[12];
  unsigned count = 0;
  do {
    digits[count++] = static_cast<char>('0' + fd % 10);
    fd /= 10;
  } while (fd != 0);
  *out++ = kMark;
  while (count > 0) *out++ = digits[--count];
  *out = '\0';
}

bool write_whole(int fd, const char* text, std::size_t length) {
  while (length > 0) {
    const ssize_t put = sys::write(fd, text, length);
    if (put <= 0) return false;
    text += put;
    length -= static_cast<std::size_t>(put);
  }
  return true;
}

}  // namespace

int write_exec_table_file(const char* text, std::size_t length, char* reference) {
  const auto made = static_cast<int>(
      sys::call(SYS_memfd_create, sys::word("cairn-descriptors"), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (made < 0) return made;
  // High, so that no action of a spawn and no program that counts its descriptors meets it.
  const int high = sys::fcntl(made, F_DUPFD_CLOEXEC, descriptor_floor());
  const int fd = high >= 0 ? high : made;
  if (high >= 0) sys::close(made);
  // With its end, so that a reader need not trust the size.
  if (write_whole(fd, text, length + 1) && sys::fcntl(fd, F_ADD_SEALS, kSeals) == 0) {
    write_reference(fd, reference);
    return fd;
  }
  sys::close(fd);
  return -ENOMEM;
}

ExecTableText::ExecTableText(const char* value) {
  if (value == nullptr || *value != kMark) {
    text_ = value;
    return;
  }
  const int fd = descriptor_in(value);
  // Only such a file is as the program before left it, and ours to close.
  if (fd < 0 || sys::fcntl(fd, F_GET_SEALS) != kSeals) return;
  struct ::statx status;
  if (sys::statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &status) == 0 && status.stx_size != 0 &&
      status.stx_size <= kBytesMax) {
    void* memory = sys::mmap(nullptr, status.stx_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (!sys::is_error(memory)) {
      mapping_ = memory;
      size_ = status.stx_size;
    }
  }
  sys::close(fd);
  const auto* text = static_cast<const char*>(mapping_);
  if (text != nullptr && text[size_ - 1] == '\0') text_ = text;
}

ExecTableText::~ExecTableText() {
  if (mapping_ != nullptr) sys::munmap(mapping_, size_);
}

}  // namespace cairn
