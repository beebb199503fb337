// SPDX-License-Identifier: Apache-2.0
#include "frontends/libc/stdio_jumps.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/ids.h"
#include "base/system_call.h"
#include "frontends/libc/real_calls.h"

// libc's tables and functions, which the linker finds with all else that this library imports: the
// same seven names by dlsym() cost every process 12 us at its start. A libc without them leaves
// null.
// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): libc has named them.
extern "C" {
[[gnu::weak]] extern void* _IO_file_jumps[];
[[gnu::weak]] extern void* _IO_wfile_jumps[];
[[gnu::weak]] ssize_t _IO_file_read(FILE*, void*, ssize_t);
[[gnu::weak]] ssize_t _IO_file_write(FILE*, const void*, ssize_t);
[[gnu::weak]] off64_t _IO_file_seek(FILE*, off64_t, int);
[[gnu::weak]] int _IO_file_close(FILE*);
[[gnu::weak]] int _IO_file_stat(FILE*, void*);
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

namespace cairn {
namespace {

// libc's functions in the table, which ours replace.
struct OriginalCalls {
  ssize_t (*read)(FILE*, void*, ssize_t);
  ssize_t (*write)(FILE*, const void*, ssize_t);
  off64_t (*seek)(FILE*, off64_t, int);
  int (*close)(FILE*);
  int (*stat)(FILE*, void*);
};

constexpr unsigned kTableEntries = 21;
constexpr int kErrorSeen = 0x20;  // _IO_ERR_SEEN of FILE::_flags

constinit RealCall<FILE*(const char*, const char*)> real_fopen{"fopen"};
OriginalCalls original;
StdioCalls ours;
bool installed = false;

ssize_t stream_read(FILE* stream, void* buffer, ssize_t length) {
  const int fd = stream->_fileno;
  if (!ours.is_ours(fd)) return original.read(stream, buffer, length);
  return ours.read(fd, buffer, static_cast<std::size_t>(length));
}

// As libc's: writes until all is written or an error, notes the error in the stream, moves its idea
// of the offset.
ssize_t stream_write(FILE* stream, const void* data, ssize_t length) {
  const int fd = stream->_fileno;
  if (!ours.is_ours(fd)) return original.write(stream, data, length);
  const char* next = static_cast<const char*>(data);
  ssize_t left = length;
  while (left > 0) {
    const ssize_t written = ours.write(fd, next, static_cast<std::size_t>(left));
    if (written < 0) {
      stream->_flags |= kErrorSeen;
      break;
    }
    CAIRN_DCHECK(written <= left);
    left -= written;
    next += written;
  }
  if (stream->_offset >= 0) stream->_offset += length - left;
  return length - left;
}

off64_t stream_seek(FILE* stream, off64_t offset, int whence) {
  const int fd = stream->_fileno;
  if (!ours.is_ours(fd)) return original.seek(stream, offset, whence);
  return ours.seek(fd, offset, whence);
}

int stream_close(FILE* stream) {
  const int fd = stream->_fileno;
  if (!ours.is_ours(fd)) return original.close(stream);
  return ours.close(fd);
}

int stream_stat(FILE* stream, void* status) {
  const int fd = stream->_fileno;
  if (!ours.is_ours(fd)) return original.stat(stream, status);
  return ours.stat(fd, static_cast<struct stat*>(status));
}

// The entry that holds `function`, or null when there is not exactly one.
void** entry_of(void** table, void* function) {
  void** found = nullptr;
  for (unsigned index = 0; index < kTableEntries; ++index) {
    if (table[index] != function) continue;
    if (found != nullptr) return nullptr;
    found = &table[index];
  }
  return found;
}

struct Replacement {
  void* before;
  void* after;
};

bool has_all(void** table, const Replacement* replacements, unsigned count) {
  for (unsigned index = 0; index < count; ++index) {
    if (entry_of(table, replacements[index].before) == nullptr) return false;
  }
  return true;
}

// The pages that a table lies in.
struct Pages {
  std::uintptr_t begin;
  std::uintptr_t end;
  bool operator==(const Pages&) const = default;
};

Pages pages_of(void** table) {
  constexpr std::uintptr_t kMask = kPageBytes - 1;
  return Pages{reinterpret_cast<std::uintptr_t>(table) & ~kMask,
               (reinterpret_cast<std::uintptr_t>(table + kTableEntries) + kMask) & ~kMask};
}

// The tables are read-only after relocation; their pages become writable for the moment.
bool protect(const Pages& pages, int protection) {
  return sys::call(SYS_mprotect, static_cast<long>(pages.begin),
                   static_cast<long>(pages.end - pages.begin), protection) == 0;
}

void replace_all(void** table, const Replacement* replacements, unsigned count) {
  for (unsigned index = 0; index < count; ++index) {
    *entry_of(table, replacements[index].before) = replacements[index].after;
  }
}

template <typename Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

// The table of a live stream stands right behind the public part of FILE.
void** table_of(FILE* stream) {
  void** table = nullptr;
  std::memcpy(&table, reinterpret_cast<char*>(stream) + sizeof(FILE), sizeof table);
  return table;
}

}  // namespace

bool install_stdio_jumps(const StdioCalls& calls) {
  if (installed) return true;
  CAIRN_DCHECK(calls.is_ours != nullptr && calls.read != nullptr && calls.write != nullptr);
  CAIRN_DCHECK(calls.seek != nullptr && calls.close != nullptr && calls.stat != nullptr);
  void** narrow = _IO_file_jumps;
  void** wide = _IO_wfile_jumps;
  if (narrow == nullptr || wide == nullptr || stderr == nullptr || table_of(stderr) != narrow)
    return false;
  original = {_IO_file_read, _IO_file_write, _IO_file_seek, _IO_file_close, _IO_file_stat};
  if (original.read == nullptr || original.write == nullptr || original.seek == nullptr ||
      original.close == nullptr || original.stat == nullptr) {
    return false;
  }
  const Replacement replacements[] = {
      {address_of(original.read), address_of(stream_read)},
      {address_of(original.write), address_of(stream_write)},
      {address_of(original.seek), address_of(stream_seek)},
      {address_of(original.close), address_of(stream_close)},
      {address_of(original.stat), address_of(stream_stat)},
  };
  constexpr unsigned kCount = sizeof replacements / sizeof replacements[0];
  static_assert(kCount <= kTableEntries);
  if (!has_all(narrow, replacements, kCount) || !has_all(wide, replacements, kCount)) return false;
  ours = calls;
  const Pages pages = pages_of(narrow);
  if (!protect(pages, PROT_READ | PROT_WRITE)) return false;
  replace_all(narrow, replacements, kCount);
  // From here on at least narrow streams work. In today's libc the wide table lies in the same
  // pages; else wide streams share the fate of its own.
  installed = true;
  const Pages others = pages_of(wide);
  if (others == pages || protect(others, PROT_READ | PROT_WRITE))
    replace_all(wide, replacements, kCount);
  protect(pages, PROT_READ);
  if (others != pages) protect(others, PROT_READ);
  return true;
}

bool are_stdio_jumps_installed() { return installed; }

FILE* make_stream(int fd, const char* mode) {
  // libc's fopen and fdopen ask the kernel about the descriptor, which is a placeholder without
  // access rights: the stream is made over /dev/null, whose descriptor is then exchanged.
  FILE* stream = real_fopen("/dev/null", mode);
  if (stream == nullptr) return nullptr;
  sys::close(stream->_fileno);
  stream->_fileno = fd;
  return stream;
}

}  // namespace cairn
