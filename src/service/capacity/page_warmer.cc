// SPDX-License-Identifier: Apache-2.0
#include "service/capacity/page_warmer.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>

#include "base/futex.h"
#include "base/ids.h"
#include "base/system_call.h"

namespace cairn::node {
namespace {

constexpr std::uint32_t kSlabsPerStep = 32;  // 2 MiB: one huge page
constexpr int kNice = 5;                     // behind the applications, before the idle
constexpr int kSleepMs = 60'000;

}  // namespace

void PageWarmer::start() {
  thread_ = std::thread([this] { run(); });
}

void PageWarmer::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  memory_.header().warmer_wake.fetch_add(1);
  futex_wake(memory_.header().warmer_wake);
  thread_.join();
}

std::uint32_t PageWarmer::target() const {
  const std::uint32_t used = memory_.header().used_slabs.load(std::memory_order_acquire);
  const std::uint32_t ahead =
      std::clamp(used, NodeMemory::kWarmSlabsMin, NodeMemory::kWarmSlabsMax);
  return std::min(used + ahead, memory_.pool(TierId::kMemory).slab_count());
}

void PageWarmer::run() {
  pthread_setname_np(pthread_self(), "cairn-warmer");
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(sys::gettid()), kNice);
  ControlHeader& header = memory_.header();
  while (!stopping_) {
    const std::uint32_t seen = header.warmer_wake.load(std::memory_order_acquire);
    std::uint32_t warm = header.warm_slabs.load(std::memory_order_relaxed);
    // Pages that the application touched meanwhile need no second visit.
    warm = std::max(warm, std::min(header.used_slabs.load(), target()));
    if (warm < target()) {
      const std::uint32_t count = std::min(kSlabsPerStep, target() - warm);
      memory_.data().populate(std::size_t{warm} * kBlockBytes, std::size_t{count} * kBlockBytes);
      header.warm_slabs.store(warm + count, std::memory_order_release);
      continue;
    }
    futex_wait(header.warmer_wake, seen, kSleepMs);
  }
}

}  // namespace cairn::node
