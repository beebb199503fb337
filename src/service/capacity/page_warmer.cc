// SPDX-License-Identifier: Apache-2.0
#include "service/capacity/page_warmer.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>

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
  memory_.warmer_board().bell.ring_anyway();
  thread_.join();
}

std::uint32_t PageWarmer::target() const {
  const std::uint32_t used = memory_.warmer_board().used_slabs.load(std::memory_order_acquire);
  const std::uint32_t ahead =
      std::clamp(used, WarmerBoard::kAheadSlabsMin, WarmerBoard::kAheadSlabsMax);
  return std::min(used + ahead, memory_.pool(TierId::kMemory).slab_count());
}

void PageWarmer::run() {
  pthread_setname_np(pthread_self(), "cairn-warmer");
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(sys::gettid()), kNice);
  WarmerBoard& board = memory_.warmer_board();
  while (!stopping_) {
    const std::uint32_t heard = board.bell.listen();
    std::uint32_t warm = board.warm_slabs.load(std::memory_order_relaxed);
    // Pages that the application touched meanwhile need no second visit.
    warm = std::max(warm, std::min(board.used_slabs.load(), target()));
    if (warm < target()) {
      const std::uint32_t count = std::min(kSlabsPerStep, target() - warm);
      memory_.data().populate(std::size_t{warm} * kBlockBytes, std::size_t{count} * kBlockBytes);
      board.warm_slabs.store(warm + count, std::memory_order_release);
      continue;
    }
    board.bell.sleep(heard, kSleepMs, [&] { return stopping_.load() || warm < target(); });
  }
}

}  // namespace cairn::node
