// SPDX-License-Identifier: Apache-2.0
// mmap() and its relatives.
#include <stdarg.h>
#include <sys/mman.h>

#include "base/system_call.h"
#include "frontends/common/descriptor_table.h"
#include "frontends/common/hook.h"
#include "frontends/common/mappings.h"
#include "frontends/common/open_file.h"

namespace cairn {
namespace {

void* pointer_or_errno(void* result) {
  if (!sys::is_error(result)) return result;
  errno = static_cast<int>(-reinterpret_cast<std::intptr_t>(result));
  return MAP_FAILED;
}

void* map_file(OpenFile& file, void* address, std::size_t length, int protection, int flags,
               off_t offset) {
  HoldIndex hold = HoldIndex::kNone;
  if (const int error = Mappings::prepare(file, &hold); error < 0) {
    return reinterpret_cast<void*>(static_cast<std::intptr_t>(error));
  }
  void* result = sys::mmap(address, length, protection, flags, file.private_fd(), offset);
  if (sys::is_error(result)) {
    Mappings::cancel(file, hold);
    return result;
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(result);
  if ((flags & MAP_FIXED) != 0) Mappings::remove(begin, length);
  Mappings::add(begin, length, file.object, hold);
  return result;
}

}  // namespace
}  // namespace cairn

using cairn::DescriptorTable;
using cairn::Mappings;
using cairn::OpenFile;

CAIRN_HOOK(void*, mmap,
           (void* address, size_t length, int protection, int flags, int fd, off_t offset)) {
  // Allocators come here under their own locks: nothing else may be touched first.
  if ((flags & MAP_ANONYMOUS) != 0 || fd < 0) {
    void* result = cairn::sys::mmap(address, length, protection, flags, fd, offset);
    if ((flags & MAP_FIXED) != 0 && Mappings::any() && !cairn::sys::is_error(result)) {
      Mappings::remove(reinterpret_cast<std::uintptr_t>(result), length);
    }
    return cairn::pointer_or_errno(result);
  }
  OpenFile* file = DescriptorTable::find(fd);
  if (file != nullptr) {
    return cairn::pointer_or_errno(
        cairn::map_file(*file, address, length, protection, flags, offset));
  }
  void* result = cairn::sys::mmap(address, length, protection, flags, fd, offset);
  if ((flags & MAP_FIXED) != 0 && Mappings::any() && !cairn::sys::is_error(result)) {
    Mappings::remove(reinterpret_cast<std::uintptr_t>(result), length);
  }
  return cairn::pointer_or_errno(result);
}
CAIRN_TWIN(mmap, mmap64);

CAIRN_HOOK(int, munmap, (void* address, size_t length)) {
  const int result = cairn::sys::munmap(address, length);
  if (result == 0 && Mappings::any())
    Mappings::remove(reinterpret_cast<std::uintptr_t>(address), length);
  return cairn::with_errno(result);
}

CAIRN_HOOK(void*, mremap, (void* address, size_t length, size_t new_length, int flags, ...)) {
  va_list arguments;
  va_start(arguments, flags);
  void* wanted = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  void* result = reinterpret_cast<void*>(
      cairn::sys::call(SYS_mremap, cairn::sys::word(address), static_cast<long>(length),
                       static_cast<long>(new_length), flags, cairn::sys::word(wanted)));
  if (!cairn::sys::is_error(result) && Mappings::any()) {
    if ((flags & MREMAP_FIXED) != 0)
      Mappings::remove(reinterpret_cast<std::uintptr_t>(result), new_length);
    Mappings::move(reinterpret_cast<std::uintptr_t>(address), length,
                   reinterpret_cast<std::uintptr_t>(result), new_length);
  }
  return cairn::pointer_or_errno(result);
}
