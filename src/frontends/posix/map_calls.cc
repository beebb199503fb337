// SPDX-License-Identifier: Apache-2.0
// mmap() and its relatives.
#include <stdarg.h>
#include <sys/mman.h>

#include "base/system_call.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/files/mappings.h"
#include "frontends/libc/hook.h"

namespace cairn {
namespace {

void* pointer_or_errno(void* result) {
  if (!sys::is_error(result)) return result;
  errno = static_cast<int>(-reinterpret_cast<std::intptr_t>(result));
  return MAP_FAILED;
}

}  // namespace
}  // namespace cairn

using cairn::DescriptorTable;
using cairn::Mappings;
using cairn::OpenFile;

CAIRN_HOOK(void*, mmap,
           (void* address, size_t length, int protection, int flags, int fd, off_t offset)) {
  // Allocators come here under their own locks: nothing else may be touched first.
  const Mappings::Request request{address, length, protection, flags, fd, offset};
  OpenFile* file = (flags & MAP_ANONYMOUS) != 0 || fd < 0 ? nullptr : DescriptorTable::find(fd);
  return cairn::pointer_or_errno(file != nullptr ? Mappings::map_file(*file, request)
                                                 : Mappings::map(request));
}
CAIRN_TWIN(mmap, mmap64);

CAIRN_HOOK(int, munmap, (void* address, size_t length)) {
  return cairn::with_errno(Mappings::unmap(address, length));
}

CAIRN_HOOK(void*, mremap, (void* address, size_t length, size_t new_length, int flags, ...)) {
  va_list arguments;
  va_start(arguments, flags);
  void* wanted = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  return cairn::pointer_or_errno(
      Mappings::remap(Mappings::Move{address, length, new_length, flags, wanted}));
}
