// SPDX-License-Identifier: Apache-2.0
#include "bad_addresses.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "scene.h"

namespace scene {
namespace {

// A mapping of a file that was cut: its second page raises SIGBUS.
char* map_cut_file() {
  const int fd = static_cast<int>(syscall(SYS_memfd_create, "cut", 0));
  if (fd < 0 || ftruncate(fd, 2 * kPage) != 0) abort();
  void* memory = mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED || ftruncate(fd, kPage) != 0) abort();
  close(fd);
  return static_cast<char*>(memory) + kPage;
}

struct Address {
  const char* name;
  char* address;
};

std::vector<Address> bad_addresses(Fill fill) {
  const auto filled = [fill](char letter) { return fill == Fill::kLetters ? letter : '\0'; };
  char* gone = map_pages(2, PROT_READ | PROT_WRITE);
  munmap(gone, 2 * kPage);
  char* closed = map_pages(2, PROT_NONE);
  char* constant = map_pages(32, PROT_READ | PROT_WRITE);
  memset(constant, filled('c'), 32 * kPage);
  mprotect(constant, 32 * kPage, PROT_READ);
  char* torn = map_pages(32, PROT_READ | PROT_WRITE);
  memset(torn, filled('t'), 31 * kPage);
  mprotect(torn + 31 * kPage, kPage, PROT_NONE);
  char* holed = map_pages(32, PROT_READ | PROT_WRITE);
  memset(holed, filled('h'), 32 * kPage);
  mprotect(holed + 2 * kPage, kPage, PROT_NONE);
  char* end = torn + 31 * kPage;
  char* cut = map_cut_file();
  memset(cut - 100, filled('b'), 100);
  return {
      {"null", nullptr},
      {"unmapped", gone + 10},
      {"no access", closed},
      {"read-only", constant},
      {"50 bytes left", end - 50},
      {"10 bytes left", end - 10},
      {"1 byte left", end - 1},
      {"5000 bytes left", end - 5000},
      {"70000 bytes left", end - 70'000},
      {"a hole", holed + kPage + 7},
      {"cut mapping", cut},
      {"100 bytes before the cut", cut - 100},
      {"of the kernel", reinterpret_cast<char*>(~std::uintptr_t{0xfff})},
      {"not canonical", reinterpret_cast<char*>(std::uintptr_t{1} << 62)},
      {"the end of user space", reinterpret_cast<char*>((std::uintptr_t{1} << 47) - 100)},
  };
}

// One in five system calls must go past the hooks, whoever is below.
long past_the_hooks(long number, long a, long b, long c, long d) {
  long result = 0;
  register long fourth __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                   : "rcx", "r11", "memory");
  return result;
}

std::string content() {
  std::string text(kFileBytes, ' ');
  for (std::size_t at = 0; at < text.size(); ++at) {
    text[at] = static_cast<char>('A' + (at * 11 + at / 4096) % 53);
  }
  return text;
}

constexpr const char* kStateNames[] = {"resident", "missing", "mapped", "hollow"};

volatile sig_atomic_t arrived = 0;
void note_signal(int) { arrived = arrived + 1; }

}  // namespace

char* map_pages(std::size_t count, int protection) {
  void* memory = mmap(nullptr, count * kPage, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  return static_cast<char*>(memory);
}

int file_in(State state, int flags) {
  const std::string text = content();
  unlink("f");
  if (state == State::kMissing) {
    const long fd =
        past_the_hooks(SYS_openat, AT_FDCWD, reinterpret_cast<long>("f"), O_WRONLY | O_CREAT, 0644);
    past_the_hooks(SYS_write, fd, reinterpret_cast<long>(text.data()),
                   static_cast<long>(text.size()), 0);
    past_the_hooks(SYS_close, fd, 0, 0, 0);
    return open_file("f", flags);
  }
  const int maker = open_file("f", O_RDWR | O_CREAT);
  if (state == State::kHollow && ftruncate(maker, kFileBytes) != 0) abort();
  if (state != State::kHollow &&
      write(maker, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    abort();
  if (state == State::kMapped &&
      mmap(nullptr, kPage, PROT_READ, MAP_SHARED, maker, 0) == MAP_FAILED)
    abort();
  const int fd = open_file("f", flags);
  close(maker);
  return fd;
}

unsigned checksum_of_file() {
  const int fd = open_file("f", O_RDONLY);
  static char bytes[2 * kFileBytes];
  const ssize_t got = read(fd, bytes, sizeof bytes);
  close(fd);
  unsigned sum = static_cast<unsigned>(got);
  for (ssize_t at = 0; at < got; ++at) sum = sum * 31 + static_cast<unsigned char>(bytes[at]);
  return sum;
}

void note_signals() { signal(SIGUSR1, note_signal); }

const char* state_of_thread(int fd) {
  alarm(5);
  sigset_t blocked;
  if (pthread_sigmask(SIG_BLOCK, nullptr, &blocked) != 0) return "no mask";
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    if (sigismember(&blocked, signal) == 1) return "a signal is blocked";
  }
  const int before = arrived;
  raise(SIGUSR1);
  if (arrived != before + 1) return "no signal arrives";
  char byte = 'x';
  const bool may_write = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
  if (may_write && pwrite(fd, &byte, 1, kPlace) != 1) return "cannot be written";
  if (may_write && write(fd, &byte, 1) != 1) return "cannot be written on";
  alarm(0);
  return "free";
}

void try_all(const std::vector<Call>& calls, State state, int flags, Fill fill) {
  note_signals();
  const std::vector<Address> addresses = bad_addresses(fill);
  for (const Call& call : calls) {
    for (const Address& bad : addresses) {
      const int fd = file_in(state, flags);
      lseek(fd, kPlace, SEEK_SET);
      errno = 0;
      const ssize_t result = call.call(fd, bad.address);
      const int error = result == -1 ? errno : 0;
      const long offset = lseek(fd, 0, SEEK_CUR);
      const unsigned sum = checksum_of_file();
      const char* thread = state_of_thread(fd);
      std::printf("%s, %s, %s: %zd %s, offset %ld, bytes %08x, %s\n", kStateNames[int(state)],
                  call.name, bad.name, result, error == 0 ? "" : strerrorname_np(error), offset,
                  sum, thread);
      close(fd);
    }
  }
}

}  // namespace scene
