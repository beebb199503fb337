// SPDX-License-Identifier: Apache-2.0
#include "service/learning/event_reader.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/futex.h"
#include "service/attachment/used_pages.h"

namespace cairn::node {
namespace {

constexpr int kSleepMs = 3'600'000;
constexpr long kNapNanos = 200'000;
// A writer finishes an entry in 50 ns, unless it was put off the processor or killed.
constexpr int kLooksMax = 3;
// In one round and ring: a process has few threads between two stores at once. One that says of its
// ring that it is full, and has written nothing, holds up nobody for long.
constexpr int kNapsMax = 16;
constexpr long kLookAgainNanos = 20'000;

void nap(long nanos) {
  const timespec time{0, nanos};
  ::nanosleep(&time, nullptr);
}

// Learners go through the blocks of a read: those of four gigabytes behind the end of all files are
// work that nobody has asked for. Whether there are any.
bool bound_to_call(AccessEvent* event) {
  constexpr std::uint32_t kCallBytesMax = 0x7fff'f000;  // of one system call (read(2))
  const bool is_use = event->kind >= AccessKind::kMiss && event->kind <= AccessKind::kWrite;
  if (!is_use) return true;
  event->length = std::min(event->length, kCallBytesMax);
  return event->offset <= kOffsetMax;
}

}  // namespace

EventReader::EventReader(const NodeMemory& memory, StreamTable& streams, unsigned keep_percent)
    : memory_(memory),
      streams_(streams),
      keep_percent_(keep_percent),
      tails_(memory.slot_count(), 0) {
  // What stands in the rings was told to a service that is dead.
  const UsedPages pages(memory.control());
  for (std::uint32_t slot = 0; slot < memory.slot_count(); ++slot) {
    const EventRing& ring = memory.events(static_cast<std::uint16_t>(slot));
    if (pages.has(&ring)) tails_[slot] = ring.head();
  }
}

void EventReader::start() {
  if (observers_.empty()) return;
  CAIRN_CHECK(!thread_.joinable());
  set_listening(true);
  thread_ = std::thread([this] { run(); });
}

void EventReader::stop() {
  if (!thread_.joinable()) return;
  set_listening(false);
  stopping_.store(true);
  wake();
  thread_.join();
}

void EventReader::set_listening(bool is_listening) {
  const std::lock_guard lock(levels_mutex_);
  is_listening_ = is_listening;
  publish_level(lock);
}

void EventReader::publish_level(const std::lock_guard<std::mutex>&) {
  const EventLevel most = asked_for_.empty() ? EventLevel::kReads : asked_for_.rbegin()->first;
  memory_.event_board().wanted.store(is_listening_ ? most : EventLevel::kNone,
                                     std::memory_order_release);
}

void EventReader::ask_for(EventLevel level) {
  CAIRN_CHECK(level > EventLevel::kReads);  // those it has anyway
  const std::lock_guard lock(levels_mutex_);
  ++asked_for_[level];
  publish_level(lock);
}

void EventReader::ask_no_more(EventLevel level) {
  const std::lock_guard lock(levels_mutex_);
  const auto found = asked_for_.find(level);
  CAIRN_CHECK(found != asked_for_.end());
  CAIRN_CHECK(found->second > 0);
  if (--found->second == 0) asked_for_.erase(found);
  publish_level(lock);
}

void EventReader::wake() { memory_.event_board().bell.ring_anyway(); }

void EventReader::note_deaths() {
  has_deaths_.store(true);
  wake();
}

void EventReader::run() {
  pthread_setname_np(pthread_self(), "cairn-events");
  EventBoard& board = memory_.event_board();
  while (!stopping_.load()) {
    const std::uint32_t heard = board.bell.listen();
    board.is_urgent.store(0, std::memory_order_seq_cst);
    const bool has_deaths = has_deaths_.exchange(false);
    const bool has_come = take();
    if (has_deaths) pass_on_deaths();
    {
      const std::lock_guard lock(mutex_);
      ++rounds_;
    }
    changed_.notify_all();
    if (has_come) nap(kNapNanos);
    // Hits alone are read when there are many of them.
    board.bell.sleep(heard, kSleepMs, [&] {
      return stopping_.load() || board.is_urgent.load() != 0 || has_deaths_.load();
    });
  }
  (void)take();
}

void EventReader::settle() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  // The round under way may have passed a ring already.
  const std::uint64_t enough = rounds_ + 2;
  while (rounds_ < enough && !stopping_.load()) {
    wake();
    changed_.wait_for(lock, std::chrono::milliseconds(10));
  }
}

bool EventReader::take() {
  batch_.clear();
  memory_.take_told([this](std::uint16_t slot) {
    if (slot < tails_.size()) read_ring(slot);
  });
  if (batch_.empty()) return false;
  passed_on_.fetch_add(batch_.size(), std::memory_order_relaxed);
  streams_.follow(batch_);
  for (AccessObserver* observer : observers_) observer->on_accesses(batch_);
  streams_.forget_ended();
  return true;
}

void EventReader::pass_on_deaths() {
  const StreamEnds ends = streams_.follow_deaths();
  for (AccessObserver* observer : observers_) observer->on_deaths(ends);
  streams_.forget_ended();
}

void EventReader::read_ring(std::uint16_t slot) {
  CAIRN_CHECK(slot < tails_.size());
  const EventRing& ring = memory_.events(slot);
  std::uint32_t& tail = tails_[slot];
  const std::uint32_t head = ring.head();
  if (head - tail > EventRing::kEntries) {
    lost_.fetch_add(head - tail - EventRing::kEntries, std::memory_order_relaxed);
    tail = head - EventRing::kEntries;
  }
  int naps = 0;
  for (; tail != head; ++tail) {
    ToldAccess told;
    EventRing::Got got = ring.read(tail, &told.event);
    for (int look = 1; got == EventRing::Got::kUnfinished && look < kLooksMax && naps < kNapsMax;
         ++look) {
      nap(kLookAgainNanos);
      ++naps;
      got = ring.read(tail, &told.event);
    }
    // The reader checks each number from a client's ring before it uses it as an index.
    const bool is_sound = got == EventRing::Got::kEvent && told.slot() == slot &&
                          raw(told.event.object) < memory_.objects().capacity() &&
                          bound_to_call(&told.event);
    if (is_sound && is_kept()) {
      batch_.push_back(told);
    } else {
      lost_.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

bool EventReader::is_kept() {
  if (keep_percent_ >= 100) return true;
  // A linear congruence (Knuth, TAOCP 2, 3.3.4) is random enough to throw events away.
  draw_ = draw_ * 1'664'525U + 1'013'904'223U;
  return (draw_ >> 8) % 100 < keep_percent_;
}

}  // namespace cairn::node
