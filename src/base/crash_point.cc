// SPDX-License-Identifier: Apache-2.0
#include "base/crash_point.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/system_call.h"

namespace cairn {

constinit std::atomic<CrashMode> crash_mode{CrashMode::kUnknown};

namespace {

constinit std::atomic<CrashPage*> crash_page{nullptr};
constinit std::atomic<CrashSide> crash_side{CrashSide::kClient};

// Maps the page that the environment names, if any. A visit that comes meanwhile is not counted.
CrashPage* find_page() {
  const char* path = ::getenv("CAIRN_CRASH_PAGE");
  if (path == nullptr) return nullptr;
  const int fd = sys::openat(AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* mapped = sys::mmap(nullptr, sizeof(CrashPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  sys::close(fd);
  if (sys::is_error(mapped)) return nullptr;
  // A service is started without it.
  const char* preloaded = ::getenv("LD_PRELOAD");
  const bool is_client = preloaded != nullptr && ::strstr(preloaded, "libcairn_preload") != nullptr;
  crash_side.store(is_client ? CrashSide::kClient : CrashSide::kService);
  auto* page = static_cast<CrashPage*>(mapped);
  return page->magic == CrashPage::kMagic ? page : nullptr;
}

std::uint32_t hash_of(const char* name) {
  std::uint32_t hash = 2166136261U;
  for (; *name != '\0'; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 16777619U;
  return hash;
}

// A name that is being written by another process is waited for by going on: the point is counted
// in the next place then, and the driver adds both up.
CrashPage::Point* point_of(CrashPage& page, const char* name) {
  const std::uint32_t start = hash_of(name);
  for (unsigned step = 0; step < CrashPage::kPoints; ++step) {
    CrashPage::Point& point = page.points[(start + step) % CrashPage::kPoints];
    std::uint32_t named = point.is_named.load(std::memory_order_acquire);
    if (named == 0 && point.is_named.compare_exchange_strong(named, 1)) {
      ::strncpy(point.name, name, CrashPage::kNameBytes - 1);
      point.is_named.store(2, std::memory_order_release);
      return &point;
    }
    if (named == 2 && ::strncmp(point.name, name, CrashPage::kNameBytes - 1) == 0) return &point;
  }
  return nullptr;
}

void die(CrashPage& page) {
  page.deaths.fetch_add(1);
  const auto parent = static_cast<int>(sys::call(SYS_getppid));
  const auto self = static_cast<int>(sys::call(SYS_getpid));
  // Never the first process of the machine, nor a test's own.
  if (page.victims == 1 && parent > 1) sys::call(SYS_kill, parent, SIGKILL);
  sys::call(SYS_kill, self, SIGKILL);
  for (;;) sys::call(SYS_pause);
}

}  // namespace

void visit_crash_point(const char* name) {
  CrashPage* page = crash_page.load(std::memory_order_acquire);
  if (page == nullptr) {
    page = find_page();
    crash_page.store(page, std::memory_order_release);
    crash_mode.store(page != nullptr ? CrashMode::kOn : CrashMode::kOff, std::memory_order_release);
    if (page == nullptr) return;
  }
  CrashPage::Point* point = point_of(*page, name);
  if (point == nullptr) return;
  const CrashSide side = crash_side.load(std::memory_order_relaxed);
  const std::uint32_t visit = point->visits[static_cast<unsigned>(side)].fetch_add(1) + 1;
  if (visit == page->at_visit && side == page->side &&
      ::strncmp(page->name, name, CrashPage::kNameBytes - 1) == 0)
    die(*page);
}

}  // namespace cairn
