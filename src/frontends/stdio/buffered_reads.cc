// SPDX-License-Identifier: Apache-2.0
// fread() of what libc's buffer already holds. libc goes through a lock, a table of functions and a
// general loop for every record; for small records that costs more than the copy.
//
// Only the plain case is served here, by the same rules as libc's (glibc: libio/iofread.c,
// libio/fileops.c): the whole request lies between the stream's read pointers, which also holds for
// pushed-back characters and for streams in memory. Everything else is libc's.
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"

// glibc 2.32 and later; without it every stream is locked as before.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" __attribute__((weak)) char __libc_single_threaded;

namespace cairn {
namespace real {
namespace {
constinit RealCall<size_t(void*, size_t, size_t, FILE*)> fread{"fread"};
constinit RealCall<size_t(void*, size_t, size_t, FILE*)> fread_unlocked{"fread_unlocked"};
}  // namespace
}  // namespace real

namespace {

bool is_single_threaded() {
  return &__libc_single_threaded != nullptr && __libc_single_threaded != 0;
}

// True when all of it was there. Requires: nobody else uses the stream meanwhile.
bool take_buffered(void* buffer, size_t size, size_t count, FILE* stream) {
  size_t length = 0;
  if (__builtin_mul_overflow(size, count, &length) || length == 0 || stream->_mode > 0)
    return false;
  CAIRN_DCHECK(stream->_IO_read_ptr <= stream->_IO_read_end);
  const auto held = static_cast<size_t>(stream->_IO_read_end - stream->_IO_read_ptr);
  if (length > held) return false;
  memcpy(buffer, stream->_IO_read_ptr, length);
  stream->_IO_read_ptr += length;
  return true;
}

}  // namespace
}  // namespace cairn

CAIRN_HOOK(size_t, fread, (void* buffer, size_t size, size_t count, FILE* stream)) {
  const bool done =
      cairn::is_single_threaded() && cairn::take_buffered(buffer, size, count, stream);
  return __builtin_expect(done, 1) ? count : cairn::real::fread(buffer, size, count, stream);
}

CAIRN_HOOK(size_t, fread_unlocked, (void* buffer, size_t size, size_t count, FILE* stream)) {
  const bool done = cairn::take_buffered(buffer, size, count, stream);
  return __builtin_expect(done, 1) ? count
                                   : cairn::real::fread_unlocked(buffer, size, count, stream);
}
