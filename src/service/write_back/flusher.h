// SPDX-License-Identifier: Apache-2.0
// Background write-back: one scheduling thread that knows what is due, and a few stream threads
// that write.
//
// When an object is due, its trigger says (base/handling.h): periodic, when it has been dirty for
// flush.delay_ms or has flush.amount dirty (a burst should not wait); per operation, at once; per
// file, when no writer has it open; on exit, never by itself. Whatever the trigger, everything is
// due when the tiers hold too much dirty data, or somebody drains. A stream takes one object at a
// time and writes a turn of it in order of offset; then the next object has its turn, of the run
// whose share is due (service/write_back/fair_share.h). One stream per spinning disk: two files
// written in turns would make it seek.
//
// Invariants
//  1. The scheduler sleeps on the header's futex only after it announced itself and found nothing
//     dirty that can be stored; an idle node costs nothing.
//  2. A failed object keeps its data and is tried again after a pause that doubles up to
//     StoreWriter::kRetryMsMax.
//  3. One stream at most works on an object (StoreFile::queued, set from its entry into the queue
//     to the end of its last turn).
//
// Thread safety: all public functions from any thread. Ownership: borrows everything but its
// threads.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "service/write_back/fair_share.h"
#include "service/write_back/run_activity.h"
#include "service/write_back/store_files.h"
#include "service/write_back/store_writer.h"

namespace cairn::node {

class Flusher {
 public:
  using Log = StoreWriter::Log;
  Flusher(const NodeMemory& memory, StoreFiles& files, Owner self, FlushOptions options, Log log);
  ~Flusher();

  // The node has a durable log. Before start().
  void use_log(LoggedFiles& logged) { writer_.use_log(logged); }
  // By a successor that has the descriptors, before start(): see StoreWriter::take_over().
  void take_over() { writer_.take_over(); }
  void start();
  void stop();

  // Have the scheduler look again; with `urgent` everything dirty is due until it is stored once.
  void kick(bool urgent);

  // A device whose dirty data is due at once, and the reason.
  struct Wish {
    std::uint64_t device = 0;  // st_dev; 0: everything
    bool is_drain = true;      // else a program's sync(), with others at work
    friend bool operator==(const Wish&, const Wish&) = default;
  };
  // While one exists what it wishes is due, and failed objects are tried again at once.
  class DrainScope {
   public:
    DrainScope(Flusher& flusher, const Wish& wish);
    ~DrainScope();
    DrainScope(const DrainScope&) = delete;
    DrainScope& operator=(const DrainScope&) = delete;

   private:
    Flusher& flusher_;
    const Wish wish_;
  };

  // Throws away the blocks of deleted files that nobody has open any more, and closes their
  // descriptors: after the death of the last users nobody else would.
  void discard_deleted() { writer_.discard_deleted(); }

  // Stores one object now, in the calling thread. Returns 0 or -errno.
  int flush_now(ObjectIndex object, bool durable) { return writer_.flush_now(object, durable); }
  int flush_now(ObjectIndex object, bool durable, std::int64_t deadline_ns) {
    return writer_.flush_now(object, durable, deadline_ns);
  }

  // The run's share of the backing store against other runs'; see service/write_back/fair_share.h.
  void set_weight(std::uint32_t run, std::uint32_t weight);
  void end_run(std::uint32_t run);
  struct RunShare {
    std::uint32_t weight = 0;
    std::uint64_t stored_bytes = 0;  // of files that the run wrote first
    bool in_io = false;
  };
  RunShare share_of(std::uint32_t run) const;

  // True when no stream is at work and none has work waiting.
  bool is_quiet() const;
  // The path of a file that is being written now, or empty.
  std::string current_path() const;

 private:
  struct Due {
    std::uint32_t age_ms = 0;
    std::uint32_t dirty_blocks = 0;
    StoreFilePtr file;
  };
  struct Plan {
    std::vector<Due> due;
    PlacementReason reason = PlacementReason::kDue;  // of all of them
    bool any_dirty = false;            // something that can be stored is dirty, due or not
    std::int64_t next_ns = 0;          // when to look at what rests or failed again; 0 = never
    std::vector<StoreFilePtr> rested;  // whose descriptors are to be dropped

    // A file that needs nothing and whose descriptor is kept for a while.
    void note_resting(const StoreFilePtr& file, std::int64_t now_ns);
    void look_again(std::int64_t at_ns) {
      next_ns = next_ns == 0 ? at_ns : std::min(next_ns, at_ns);
    }
  };

  void schedule();
  Plan look() const;
  void enqueue(Plan& plan);
  void release_in_turn();
  void sleep(const Plan& plan, std::int64_t look_ns);
  bool is_pressed() const;
  static bool is_wished(const std::vector<Wish>& wishes, const StoreFile& file);
  bool is_due(const Object& object, std::uint32_t age_ms) const;
  static void order_for_drain(std::vector<Due>& oldest_first);
  void work(unsigned stream);
  StoreFilePtr take_locked();

  const NodeMemory& memory_;
  StoreFiles& files_;
  const FlushOptions options_;
  StoreWriter writer_;
  std::uint64_t capacity_bytes_ = 0;
  std::uint64_t dirty_seen_ = 0;      // by the scheduler, at its last look
  std::int64_t next_release_ns_ = 0;  // monotonic, of the scheduler
  RunActivity activity_;
  std::thread scheduler_;
  std::vector<std::thread> streams_;

  mutable std::mutex mutex_;
  FairShare share_;
  std::condition_variable work_;     // streams wait for the queue
  std::condition_variable changed_;  // the scheduler waits for time or for a change
  std::deque<StoreFilePtr> queue_;
  std::map<dev_t, unsigned> writing_;  // streams at work per device
  StoreFilePtr current_;
  unsigned active_ = 0;
  std::vector<Wish> wishes_;
  bool urgent_ = false;
  bool has_changed_ = false;
  bool stopping_ = false;
};

}  // namespace cairn::node
