// SPDX-License-Identifier: Apache-2.0
// A program that writes a jump over the first instructions of mmap() and its relatives, to hear of
// each mapping, and makes the system call by its number, as the memory hooks of UCX do below MPI.
// The library's syscall() must not come back to the code that was written over.
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "scene.h"

using namespace scene;

namespace {

constexpr std::size_t kPage = 4096;
int maps = 0;
int unmaps = 0;
int moves = 0;

// mmap() itself is no variadic function, but its arguments come in the same registers.
void* hear_map(void* address, std::size_t length, int protection, int flags, ...) {
  va_list others;
  va_start(others, flags);
  const int fd = va_arg(others, int);
  const auto offset = va_arg(others, off_t);
  va_end(others);
  ++maps;
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, length, protection, flags, fd, offset));
}

int hear_unmap(void* address, std::size_t length) {
  ++unmaps;
  return static_cast<int>(syscall(SYS_munmap, address, length));
}

void* hear_move(void* address, std::size_t length, std::size_t wanted, int flags) {
  ++moves;
  return reinterpret_cast<void*>(syscall(SYS_mremap, address, length, wanted, flags));
}

#if defined(__x86_64__)
// mov $target, %r11; jmp *%r11
void write_jump(const char* symbol, const void* target) {
  unsigned char code[] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3};
  memcpy(code + 2, &target, sizeof target);
  auto* const at = static_cast<unsigned char*>(dlsym(RTLD_DEFAULT, symbol));
  auto* const page = reinterpret_cast<unsigned char*>(reinterpret_cast<uintptr_t>(at) & -kPage);
  syscall(SYS_mprotect, page, 2 * kPage, PROT_READ | PROT_WRITE | PROT_EXEC);
  memcpy(at, code, sizeof code);
}
#endif

}  // namespace

SCENE(mappings_are_heard) {
#if defined(__x86_64__)
  write_jump("mmap", reinterpret_cast<const void*>(&hear_map));
  write_jump("munmap", reinterpret_cast<const void*>(&hear_unmap));
  write_jump("mremap", reinterpret_cast<const void*>(&hear_move));
#endif
  const int fd = make_file("f", "0123456789");
  const int before = maps;
  void* const memory =
      mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  say("memory", memory != MAP_FAILED);
  void* const file = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  say("file", file != MAP_FAILED);
  say_bytes("its bytes", file, 10);
  memcpy(file, "abc", 3);
  say("written beside it", pwrite(fd, "z", 1, 9));
  say_bytes("its bytes", file, 10);
  say("heard", maps - before);
  void* const longer = mremap(memory, kPage, 2 * kPage, MREMAP_MAYMOVE);
  say("moved", longer != MAP_FAILED);
  say("heard", moves);
  say("unmap", munmap(longer, 2 * kPage));
  say("unmap", munmap(file, kPage));
  say("heard", unmaps);
  say("bad", mmap(nullptr, 0, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
  say_file("f");
}
