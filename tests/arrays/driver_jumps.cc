// SPDX-License-Identifier: Apache-2.0
// A program whose signal handler never returns: it jumps out of whatever call of the file driver it
// has interrupted.
//
//   driver_jumps PLUGIN FILE
//
// It calls the driver as HDF5 does. A lock of the node's memory that a call still held would stop
// it for good.
#include <H5FDdevelop.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include <vector>

namespace {

constexpr int kJumps = 3000;
constexpr unsigned kReadWrite = 0x0001;
constexpr unsigned kTruncate = 0x0002;
constexpr unsigned kCreate = 0x0010;
constexpr haddr_t kAddressMax = haddr_t{1} << 62;
constexpr hid_t kDefaultList = 0;
constexpr size_t kBytes = size_t{1} << 20;

sigjmp_buf place;
volatile sig_atomic_t may_jump = 0;

void jump(int) {
  if (may_jump != 0) siglongjmp(place, 1);
}

void start_timer(long microseconds) {
  const itimerval interval{{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_REAL, &interval, nullptr);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  void* plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) return 2;
  const auto info = reinterpret_cast<const void* (*)()>(dlsym(plugin, "H5PLget_plugin_info"));
  const auto* driver = static_cast<const H5FD_class_t*>(info());
  H5FD_t* file =
      driver->open(arguments[2], kReadWrite | kTruncate | kCreate, kDefaultList, kAddressMax);
  if (file == nullptr) return 3;
  std::vector<char> bytes(kBytes, 'a');
  signal(SIGALRM, jump);
  static volatile int jumps = 0;
  if (sigsetjmp(place, 1) != 0) jumps = jumps + 1;
  if (jumps == 0) start_timer(300);
  may_jump = 1;
  while (jumps < kJumps)
    driver->write(file, H5FD_MEM_DRAW, kDefaultList, 0, bytes.size(), bytes.data());
  start_timer(0);
  may_jump = 0;
  memset(bytes.data(), 'b', bytes.size());
  if (driver->write(file, H5FD_MEM_DRAW, kDefaultList, 0, bytes.size(), bytes.data()) != 0)
    return 4;
  if (driver->close(file) != 0) return 5;
  printf("%d jumps\n", static_cast<int>(jumps));
  return 0;
}
