// SPDX-License-Identifier: Apache-2.0
// Named places at which a process may be made to die, for tests (tests/faults/crash_points.py):
// wherever service, keeper or client have half done something that others see.
//
//   CAIRN_CRASH_POINT("lease.slab-taken");
//
// The names stand in the section `cairn_crash_points` of each program and library, so a driver
// lists them from what was built, and a new one is tried without anybody naming it again. A process
// whose environment has CAIRN_CRASH_PAGE maps that file: it counts the visits of each point there,
// and dies by SIGKILL at the one that the driver has chosen. Without it a point costs a load and a
// branch that is always the same, so none is on the path of a hit. The build option
// CAIRN_CRASH_POINTS=OFF leaves all of them out.
//
// Thread safety: any thread, and signal handlers. Ownership: the page is the driver's.
#pragma once

#include <atomic>
#include <cstdint>

namespace cairn {

// Which side of the node a process is on: a program, or service, keeper and rescue.
enum class CrashSide : std::uint32_t { kClient, kService };

// What a driver and the processes have in common; all words by compare-and-swap or addition.
struct CrashPage {
  static constexpr std::uint32_t kMagic = 0x63726173;
  static constexpr unsigned kNameBytes = 52;
  static constexpr unsigned kPoints = 512;

  struct Point {
    char name[kNameBytes];
    std::atomic<std::uint32_t> is_named;
    std::atomic<std::uint32_t> visits[2];  // by CrashSide
  };
  std::uint32_t magic;
  // 0: the visiting process dies; 1: its parent with it.
  std::uint32_t victims;
  std::uint32_t at_visit;  // 0: nobody dies
  CrashSide side;          // of the visit
  std::atomic<std::uint32_t> deaths;
  char name[kNameBytes];  // of the point
  Point points[kPoints];
};
static_assert(sizeof(CrashPage::Point) == 64 && sizeof(CrashPage) == 72 + 512 * 64);

enum class CrashMode : std::uint8_t { kUnknown, kOff, kOn };
// Hidden in each program and library.
extern constinit std::atomic<CrashMode> crash_mode;
void visit_crash_point(const char* name);

}  // namespace cairn

#ifndef CAIRN_NO_CRASH_POINTS
// The section is not loaded. An inlined function may name a point twice: the driver counts it once.
#define CAIRN_CRASH_POINT(name)                                                                  \
  do {                                                                                           \
    __asm__ volatile(".pushsection cairn_crash_points,\"\",@progbits\n\t.asciz \"" name          \
                     "\"\n\t.popsection");                                                       \
    if (__builtin_expect(                                                                        \
            ::cairn::crash_mode.load(std::memory_order_relaxed) != ::cairn::CrashMode::kOff, 0)) \
      ::cairn::visit_crash_point(name);                                                          \
  } while (false)
#else
#define CAIRN_CRASH_POINT(name) static_cast<void>(0)
#endif
