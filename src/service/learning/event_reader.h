// SPDX-License-Identifier: Apache-2.0
// Takes what the processes tell about their accesses (memory/arena/event_ring.h), finds the stream
// of each, and passes it on to its observers.
//
// The thread sleeps until a process has told something urgent or has filled half of its ring, reads
// all rings, and naps for a moment before it sleeps again: a program that misses a thousand times a
// second wakes it once for several of them.
//
// Thread safety: add() before start(); start() and stop() by the composing thread; counts() and
// settle() from any.
// Ownership: borrows the memory and the table of streams; owns its thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "service/learning/access_observer.h"
#include "service/learning/stream_table.h"

namespace cairn::node {

class EventReader {
 public:
  // Passes on this percentage of the events and throws the others away unseen; lets tests simulate
  // loss.
  EventReader(const NodeMemory& memory, StreamTable& streams, unsigned keep_percent = 100);
  ~EventReader() { stop(); }
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  // Observers hear of each batch in the order in which they were added. Each outlives the reader's
  // thread.
  void add(AccessObserver& observer) { observers_.push_back(&observer); }
  // Processes have died. Any thread.
  void note_deaths();
  // Without an observer nobody tells anything.
  void start();
  void stop();

  // Clients report calls of this level, until as many say that they need them no more. Any thread.
  void ask_for(EventLevel level);
  void ask_no_more(EventLevel level);

  struct Counts {
    std::uint64_t passed_on = 0;
    std::uint64_t lost = 0;  // overwritten before they were read, unfinished, or not kept
  };
  Counts counts() const { return {passed_on_.load(), lost_.load()}; }

  // Waits until what has been told by now has been passed on.
  void settle();
  // Has the thread read soon.
  void wake();
  // Reads all rings once. The reader's thread, or a test that has not started it.
  bool take();

 private:
  void run();
  void pass_on_deaths();
  void read_ring(std::uint16_t slot);
  bool is_kept();
  void set_listening(bool is_listening);
  void publish_level(const std::lock_guard<std::mutex>& held);

  const NodeMemory& memory_;
  StreamTable& streams_;
  const unsigned keep_percent_;
  std::vector<AccessObserver*> observers_;
  std::atomic<bool> has_deaths_{false};
  std::vector<std::uint32_t> tails_;  // by slot: the first place that was not read
  std::vector<ToldAccess> batch_;
  std::uint32_t draw_ = 0;
  std::atomic<std::uint64_t> passed_on_{0};
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t rounds_ = 0;  // that have ended
  std::thread thread_;
  std::mutex levels_mutex_;
  bool is_listening_ = false;
  std::map<EventLevel, unsigned> asked_for_;  // by how many
};

}  // namespace cairn::node
