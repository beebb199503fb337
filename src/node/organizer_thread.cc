// SPDX-License-Identifier: Apache-2.0
#include "node/organizer_thread.h"

#include <algorithm>

#include "base/futex.h"

namespace cairn::node {
namespace {

constexpr int kIdleMs = 3'600'000;

}  // namespace

OrganizerThread::OrganizerThread(const NodeMemory& memory, Owner self, const NodeConfig& config, Flusher& flusher)
    : memory_(memory), self_(self), config_(config), flusher_(flusher) {}

OrganizerThread::~OrganizerThread() { stop(); }

void OrganizerThread::start() {
  thread_ = std::thread([this] { run(); });
}

void OrganizerThread::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  memory_.header().organizer_wake.fetch_add(1, std::memory_order_acq_rel);
  futex_wake(memory_.header().organizer_wake);
  thread_.join();
}

void OrganizerThread::run() {
  Actor actor;
  actor.memory = &memory_;
  actor.self = self_;
  actor.counters = &memory_.slot(self_.slot()).shards[0];
  ControlHeader& header = memory_.header();
  while (!stopping_.load()) {
    const std::uint32_t seen = header.organizer_wake.load(std::memory_order_acquire);
    header.organizer_sleeping.store(1, std::memory_order_seq_cst);
    if (!stopping_.load()) futex_wait(header.organizer_wake, seen, kIdleMs);
    header.organizer_sleeping.store(0, std::memory_order_seq_cst);
    make_room(actor);
    reclaim_objects(actor);
  }
  actor.drop_leases();
}

bool OrganizerThread::make_room(Actor&) { return false; }

void OrganizerThread::reclaim_objects(Actor& actor) const {
  ObjectTable& objects = memory_.objects();
  if (std::uint64_t{objects.live_count()} * 10 < std::uint64_t{objects.capacity()} * 9) return;
  objects.reclaim_idle(objects.capacity() / 10, actor.self, actor.owners());
}

}  // namespace cairn::node
