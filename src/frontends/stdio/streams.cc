// SPDX-License-Identifier: Apache-2.0
#include "frontends/stdio/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/files/file_io.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/libc/stdio_jumps.h"
#include "frontends/libc/stream_mode.h"

namespace cairn {

namespace real {
namespace {
constinit RealCall<FILE*(const char*, const char*)> fopen{"fopen"};
constinit RealCall<FILE*(int, const char*)> fdopen{"fdopen"};
constinit RealCall<FILE*(const char*, const char*, FILE*)> freopen{"freopen"};
constinit RealCall<void(const char*)> perror{"perror"};
}  // namespace
}  // namespace real

namespace {

constexpr mode_t kCreationMode = 0666;  // fopen's, less the umask

bool is_ours(int fd) { return DescriptorTable::find(fd) != nullptr; }

ssize_t read_ours(int fd, void* buffer, size_t length) {
  OpenFile* file = DescriptorTable::find(fd);
  return file != nullptr ? with_errno(file_read(*file, buffer, length))
                         : ::read(fd, buffer, length);
}

ssize_t write_ours(int fd, const void* buffer, size_t length) {
  OpenFile* file = DescriptorTable::find(fd);
  return file != nullptr ? with_errno(file_write(*file, buffer, length))
                         : ::write(fd, buffer, length);
}

// Streams of this library's own hooks: managed files and everything else take the same way in, and
// only a descriptor that turned out to be buffered gets a stream that libc could not have made.
FILE* stream_over(int fd, const StreamMode& mode, const char* text) {
  const bool has_charset = strchr(text, ',') != nullptr;
  FILE* stream = is_ours(fd) || has_charset ? make_stream(fd, mode.for_descriptor)
                                            : real::fdopen(fd, mode.for_descriptor);
  if (stream != nullptr && mode.is_append_only) ::lseek(fd, 0, SEEK_END);
  return stream;
}

FILE* open_stream(const char* path, const char* text) {
  const StreamMode mode = parse_stream_mode(text);
  if (!mode.is_valid || !are_stdio_jumps_installed()) return real::fopen(path, text);
  const int fd = ::open(path, mode.flags, kCreationMode);
  if (fd < 0) return nullptr;
  FILE* stream = stream_over(fd, mode, text);
  if (stream == nullptr) {
    const ErrnoKeeper keep;
    ::close(fd);
  }
  return stream;
}

// fdopen checks this by the kernel's flags, which the placeholder does not have.
bool allows(const OpenFile& file, int stream_flags) {
  const int access = stream_flags & O_ACCMODE;
  if (access != O_WRONLY && !file.may_read) return false;
  return access == O_RDONLY || file.may_write;
}

FILE* attach_stream(int fd, const char* text) {
  OpenFile* file = DescriptorTable::find(fd);
  const StreamMode mode = parse_stream_mode(text);
  if (file == nullptr || !mode.is_valid || !are_stdio_jumps_installed())
    return real::fdopen(fd, text);
  if (!allows(*file, mode.flags)) {
    errno = EINVAL;
    return nullptr;
  }
  if ((mode.flags & O_APPEND) != 0 && (file->flags() & O_APPEND) == 0) {
    ::fcntl(fd, F_SETFL, static_cast<int>(file->flags()) | O_APPEND);
    if (mode.is_append_only) ::lseek(fd, 0, SEEK_END);
  }
  return make_stream(fd, mode.for_descriptor);
}

// Points `stream` at /dev/null without libc's touching a descriptor that is ours: the number stays,
// what it referred to is closed the way the application would have closed it.
bool park_stream(FILE* stream, const StreamMode& mode) {
  fflush(stream);
  const int fd = stream->_fileno;
  if (is_ours(fd)) {
    const int nothing = sys::openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0) return false;
    ::dup2(nothing, fd);
    sys::close(nothing);
  }
  return real::freopen("/dev/null", mode.for_descriptor, stream) != nullptr;
}

// As libc's freopen: the stream keeps its number, takes the new file, and is closed when that
// cannot be opened.
FILE* reopen_stream(const char* path, const char* text, FILE* stream) {
  const StreamMode mode = parse_stream_mode(text);
  if (!mode.is_valid || !are_stdio_jumps_installed()) return real::freopen(path, text, stream);
  char own_path[40];
  static_assert(sizeof own_path >= sizeof "/proc/self/fd/-2147483648");
  if (path == nullptr) {
    if (!is_ours(stream->_fileno)) return real::freopen(path, text, stream);
    snprintf(own_path, sizeof own_path, "/proc/self/fd/%d", stream->_fileno);
    path = own_path;
  }
  const int fd = ::open(path, mode.flags, kCreationMode);
  if (fd < 0) {
    const int error = errno;
    ::close(stream->_fileno);
    stream->_fileno = -1;
    // It is closed, and no name is opened: libc would cut the file past us.
    real::freopen("", text, stream);
    errno = error;
    return nullptr;
  }
  if (!park_stream(stream, mode)) {
    ::close(fd);
    return nullptr;
  }
  if (stream->_fileno != fd) {
    ::dup3(fd, stream->_fileno, mode.flags & O_CLOEXEC);
    ::close(fd);
  }
  if (mode.is_append_only) ::lseek(stream->_fileno, 0, SEEK_END);
  return stream;
}

int print_to(int fd, const char* format, va_list arguments) {
  char* text = nullptr;
  const int length = vasprintf(&text, format, arguments);
  if (length < 0) return -1;
  int written = 0;
  while (written < length) {
    const ssize_t part = ::write(fd, text + written, static_cast<size_t>(length - written));
    if (part < 0) {
      const ErrnoKeeper keep;
      free(text);
      return -1;
    }
    CAIRN_DCHECK(part <= length - written);
    written += static_cast<int>(part);
  }
  free(text);
  return length;
}

}  // namespace

void start_streams() {
  static constexpr StdioCalls kCalls = {
      .is_ours = is_ours,
      .read = read_ours,
      .write = write_ours,
      .seek = [](int fd, off_t offset, int whence) { return ::lseek(fd, offset, whence); },
      .close = [](int fd) { return ::close(fd); },
      .stat = [](int fd, struct stat* status) { return ::fstat(fd, status); },
  };
  install_stdio_jumps(kCalls);
}

CAIRN_HOOK(FILE*, fopen, (const char* path, const char* mode)) { return open_stream(path, mode); }
CAIRN_TWIN(fopen, fopen64);
CAIRN_TWIN(fopen, _IO_fopen);

CAIRN_HOOK(FILE*, fdopen, (int fd, const char* mode)) { return attach_stream(fd, mode); }
CAIRN_TWIN(fdopen, _IO_fdopen);

CAIRN_HOOK(FILE*, freopen, (const char* path, const char* mode, FILE* stream)) {
  return reopen_stream(path, mode, stream);
}
CAIRN_TWIN(freopen, freopen64);

// Newer libcs print to a descriptor without a stream in between.
CAIRN_HOOK(int, vdprintf, (int fd, const char* format, va_list arguments)) {
  return print_to(fd, format, arguments);
}

CAIRN_HOOK(int, dprintf, (int fd, const char* format, ...)) {
  va_list arguments;
  va_start(arguments, format);
  const int result = print_to(fd, format, arguments);
  va_end(arguments);
  return result;
}

CAIRN_HOOK(int, __vdprintf_chk, (int fd, int, const char* format, va_list arguments)) {
  return print_to(fd, format, arguments);
}

CAIRN_HOOK(int, __dprintf_chk, (int fd, int, const char* format, ...)) {
  va_list arguments;
  va_start(arguments, format);
  const int result = print_to(fd, format, arguments);
  va_end(arguments);
  return result;
}

// libc's perror writes through a copy of the descriptor that it makes behind our back.
CAIRN_HOOK(void, perror, (const char* prefix)) {
  if (!is_ours(fileno_unlocked(stderr))) return real::perror(prefix);
  const int error = errno;
  const bool has_prefix = prefix != nullptr && *prefix != '\0';
  fprintf(stderr, "%s%s%s\n", has_prefix ? prefix : "", has_prefix ? ": " : "", strerror(error));
  errno = error;
}

}  // namespace cairn
