// SPDX-License-Identifier: Apache-2.0
// mmap() and its relatives.
#include "frontends/posix/map_calls.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>

#include <cstdint>

#include "base/system_call.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/files/file_use.h"
#include "frontends/libc/hook.h"

namespace cairn {

void* map_memory(const Mappings::Request& request) {
  // Allocators come here under their own locks: nothing else may be touched first.
  OpenFile* file = (request.flags & MAP_ANONYMOUS) != 0 || request.fd < 0
                       ? nullptr
                       : DescriptorTable::find(request.fd);
  if (file == nullptr) return Mappings::map(request);
  FileUse use(*file);
  if (!use.begin()) {
    if (DescriptorTable::find(request.fd) != file) return map_memory(request);
    return reinterpret_cast<void*>(std::intptr_t{-EBADF});
  }
  return Mappings::map_file(*file, request);
}

void* pointer_or_errno(void* result) {
  if (!sys::is_error(result)) return result;
  errno = static_cast<int>(-reinterpret_cast<std::intptr_t>(result));
  return MAP_FAILED;
}

}  // namespace cairn

CAIRN_HOOK(void*, mmap,
           (void* address, size_t length, int protection, int flags, int fd, off_t offset)) {
  return cairn::pointer_or_errno(
      cairn::map_memory({address, length, protection, flags, fd, offset}));
}
CAIRN_TWIN(mmap, mmap64);

CAIRN_HOOK(int, munmap, (void* address, size_t length)) {
  return cairn::with_errno(cairn::Mappings::unmap(address, length));
}

CAIRN_HOOK(void*, mremap, (void* address, size_t length, size_t new_length, int flags, ...)) {
  va_list arguments;
  va_start(arguments, flags);
  void* wanted = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  return cairn::pointer_or_errno(
      cairn::Mappings::remap({address, length, new_length, flags, wanted}));
}
