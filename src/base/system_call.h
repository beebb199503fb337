// SPDX-License-Identifier: Apache-2.0
// System calls that bypass libc's symbols.
//
// The preloaded library interposes libc's names, so its own I/O must never go through them: every
// function here issues the system call itself and returns its result or -errno. errno is never
// touched.
//
// Thread safety: as the system call's. Async-signal-safe.
#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include <cstddef>
#include <cstdint>
#if defined(__SANITIZE_THREAD__)
#include <cerrno>
#endif

namespace cairn::sys {

#if defined(__x86_64__)
inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
}
#else
#error "Cairn knows the system call convention of x86-64 and aarch64 only"
#endif

template <typename T>
inline long word(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

inline ssize_t read(int fd, void* buffer, std::size_t length) {
  return call(SYS_read, fd, word(buffer), static_cast<long>(length));
}
inline ssize_t write(int fd, const void* buffer, std::size_t length) {
  return call(SYS_write, fd, word(buffer), static_cast<long>(length));
}
inline ssize_t pread(int fd, void* buffer, std::size_t length, off_t offset) {
  return call(SYS_pread64, fd, word(buffer), static_cast<long>(length), offset);
}
inline ssize_t pwrite(int fd, const void* buffer, std::size_t length, off_t offset) {
  return call(SYS_pwrite64, fd, word(buffer), static_cast<long>(length), offset);
}
inline ssize_t readv(int fd, const iovec* parts, int count) {
  return call(SYS_readv, fd, word(parts), count);
}
inline ssize_t writev(int fd, const iovec* parts, int count) {
  return call(SYS_writev, fd, word(parts), count);
}
inline ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) {
  return call(SYS_preadv, fd, word(parts), count, offset, 0);
}
inline ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  return call(SYS_pwritev, fd, word(parts), count, offset, 0);
}
inline int openat(int directory, const char* path, int flags, mode_t mode = 0) {
  return static_cast<int>(call(SYS_openat, directory, word(path), flags, static_cast<long>(mode)));
}
inline int close(int fd) { return static_cast<int>(call(SYS_close, fd)); }
inline int fcntl(int fd, int command, long argument = 0) {
  return static_cast<int>(call(SYS_fcntl, fd, command, argument));
}
inline int dup3(int from, int to, int flags) {
  return static_cast<int>(call(SYS_dup3, from, to, flags));
}
inline off_t lseek(int fd, off_t offset, int whence) { return call(SYS_lseek, fd, offset, whence); }
inline int ftruncate(int fd, off_t size) { return static_cast<int>(call(SYS_ftruncate, fd, size)); }
inline int truncate(const char* path, off_t size) {
  return static_cast<int>(call(SYS_truncate, word(path), size));
}
inline int fallocate(int fd, int mode, off_t offset, off_t length) {
  return static_cast<int>(call(SYS_fallocate, fd, mode, offset, length));
}
inline int fsync(int fd) { return static_cast<int>(call(SYS_fsync, fd)); }
inline int fdatasync(int fd) { return static_cast<int>(call(SYS_fdatasync, fd)); }
inline int statx(int directory, const char* path, int flags, unsigned mask,
                 struct ::statx* result) {
  return static_cast<int>(call(SYS_statx, directory, word(path), flags, mask, word(result)));
}
inline int utimensat(int directory, const char* path, const timespec* times, int flags) {
  return static_cast<int>(call(SYS_utimensat, directory, word(path), word(times), flags));
}
inline long readlinkat(int directory, const char* path, char* buffer, std::size_t size) {
  return call(SYS_readlinkat, directory, word(path), word(buffer), static_cast<long>(size));
}
#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer hears of these. Without that, memory that one thread unmaps and another maps at
// the same place looks like a race of the two.
extern "C" void* __interceptor_mmap(void*, std::size_t, int, int, int, off_t);
extern "C" int __interceptor_munmap(void*, std::size_t);
inline void* mmap(void* address, std::size_t length, int protection, int flags, int fd,
                  off_t offset) {
  const int before = errno;
  void* mapped = __interceptor_mmap(address, length, protection, flags, fd, offset);
  if (mapped == reinterpret_cast<void*>(-1L))
    mapped = reinterpret_cast<void*>(static_cast<std::intptr_t>(-errno));
  errno = before;
  return mapped;
}
inline int munmap(void* address, std::size_t length) {
  const int before = errno;
  const int result = __interceptor_munmap(address, length) == 0 ? 0 : -errno;
  errno = before;
  return result;
}
#else
inline void* mmap(void* address, std::size_t length, int protection, int flags, int fd,
                  off_t offset) {
  return reinterpret_cast<void*>(
      call(SYS_mmap, word(address), static_cast<long>(length), protection, flags, fd, offset));
}
inline int munmap(void* address, std::size_t length) {
  return static_cast<int>(call(SYS_munmap, word(address), static_cast<long>(length)));
}
#endif
// True when `address`, as mmap() above returned it, is an error (-errno).
inline bool is_error(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) >= static_cast<std::uintptr_t>(-4095L);
}
inline int madvise(void* address, std::size_t length, int advice) {
  return static_cast<int>(call(SYS_madvise, word(address), static_cast<long>(length), advice));
}
inline uid_t geteuid() { return static_cast<uid_t>(call(SYS_geteuid)); }
inline pid_t getpid() { return static_cast<pid_t>(call(SYS_getpid)); }
inline pid_t getppid() { return static_cast<pid_t>(call(SYS_getppid)); }
inline pid_t gettid() { return static_cast<pid_t>(call(SYS_gettid)); }

}  // namespace cairn::sys
