// SPDX-License-Identifier: Apache-2.0
// read(), write() and lseek() with their positioned and fortified forms: the calls that must be
// fast.
#include <unistd.h>

#include "frontends/descriptors/descriptor_table.h"
#include "frontends/files/file_io.h"
#include "frontends/libc/cancellation.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/posix/late_calls.h"

namespace cairn::real {
namespace {
constinit RealCall<ssize_t(int, void*, size_t)> read{"read"};
constinit RealCall<ssize_t(int, const void*, size_t)> write{"write"};
constinit RealCall<ssize_t(int, void*, size_t, off_t)> pread{"pread64"};
constinit RealCall<ssize_t(int, const void*, size_t, off_t)> pwrite{"pwrite64"};
constinit RealCall<ssize_t(int, void*, size_t, size_t)> read_chk{"__read_chk"};
constinit RealCall<ssize_t(int, void*, size_t, off_t, size_t)> pread_chk{"__pread64_chk"};
constinit RealCall<off_t(int, off_t, int)> lseek{"lseek64"};
}  // namespace
}  // namespace cairn::real

using cairn::answer;
using cairn::cancellation_point;
using cairn::DescriptorTable;
using cairn::OpenFile;
using cairn::with_errno;

CAIRN_HOOK(ssize_t, read, (int fd, void* buffer, size_t length)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::read(fd, buffer, length);
  cancellation_point();
  return answer(fd, file, cairn::file_read(*file, buffer, length),
                [=] { return read(fd, buffer, length); });
}
CAIRN_TWIN(read, __read);

CAIRN_HOOK(ssize_t, write, (int fd, const void* buffer, size_t length)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::write(fd, buffer, length);
  cancellation_point();
  return answer(fd, file, cairn::file_write(*file, buffer, length),
                [=] { return write(fd, buffer, length); });
}
CAIRN_TWIN(write, __write);

namespace {
// A call has three parts: the hook, which needs no registers of its own (a call on another file
// goes straight on), the plain hit, and all else. The hook's arguments stay where they are, `file`
// in the place of `fd`.
[[gnu::noinline]] ssize_t pread_beyond_hit(OpenFile* file, void* buffer, size_t length,
                                           off_t offset, int fd) {
  return answer(fd, file, cairn::file_pread_any(*file, buffer, length, offset),
                [=] { return pread(fd, buffer, length, offset); });
}

[[gnu::noinline]] ssize_t pread_managed(OpenFile* file, void* buffer, size_t length, off_t offset,
                                        int fd) {
  if (__builtin_expect(cairn::file_pread_hit(*file, buffer, length, offset), 1))
    return static_cast<ssize_t>(length);
  return pread_beyond_hit(file, buffer, length, offset, fd);
}
}  // namespace

CAIRN_HOOK(ssize_t, pread, (int fd, void* buffer, size_t length, off_t offset)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::pread(fd, buffer, length, offset);
  return pread_managed(file, buffer, length, offset, fd);
}
CAIRN_TWIN(pread, pread64);
CAIRN_TWIN(pread, __pread64);

CAIRN_HOOK(ssize_t, pwrite, (int fd, const void* buffer, size_t length, off_t offset)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::pwrite(fd, buffer, length, offset);
  cancellation_point();
  return answer(fd, file, cairn::file_pwrite(*file, buffer, length, offset),
                [=] { return pwrite(fd, buffer, length, offset); });
}
CAIRN_TWIN(pwrite, pwrite64);
CAIRN_TWIN(pwrite, __pwrite64);

CAIRN_HOOK(ssize_t, __read_chk, (int fd, void* buffer, size_t length, size_t buffer_size)) {
  OpenFile* file = DescriptorTable::find(fd);
  // A buffer that is too small is libc's to report.
  if (file == nullptr || length > buffer_size)
    return cairn::real::read_chk(fd, buffer, length, buffer_size);
  cancellation_point();
  return answer(fd, file, cairn::file_read(*file, buffer, length),
                [=] { return read(fd, buffer, length); });
}

CAIRN_HOOK(ssize_t, __pread_chk,
           (int fd, void* buffer, size_t length, off_t offset, size_t buffer_size)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr || length > buffer_size) {
    return cairn::real::pread_chk(fd, buffer, length, offset, buffer_size);
  }
  return pread_managed(file, buffer, length, offset, fd);
}
CAIRN_TWIN(__pread_chk, __pread64_chk);

CAIRN_HOOK(off_t, lseek, (int fd, off_t offset, int whence)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::lseek(fd, offset, whence);
  return with_errno(cairn::file_seek(*file, offset, whence));
}
CAIRN_TWIN(lseek, lseek64);
CAIRN_TWIN(lseek, __lseek);
CAIRN_TWIN(lseek, llseek);
