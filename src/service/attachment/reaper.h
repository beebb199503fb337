// SPDX-License-Identifier: Apache-2.0
// The thread that puts in order what dead clients left, in batches: one sweep serves all deaths
// since the last.
//
//   departed client     step                                               next
//   dead                buckets, leases, holds swept                       slot released
//   replaced by exec    buckets, leases swept; holds wait for new image    holds swept later
//   holds in transit    wait kTransitGraceNanos for the child              released, then the slot
//
// Thread safety: the notifying functions from any thread. Ownership: borrows everything.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "service/attachment/attach_server.h"
#include "service/attachment/audit.h"
#include "service/attachment/client_table.h"
#include "service/attachment/sweep.h"

namespace cairn::node {

class Reaper {
 public:
  // A parent that died between fork and its child's first call: the child has this long to take
  // over.
  static constexpr std::int64_t kTransitGraceNanos = 5'000'000'000;

  // `after_sweep` runs in the reaper's thread after each batch, each audit, and when holds in
  // transit were released.
  Reaper(const NodeMemory& memory, ClientTable& clients, Audit& audit,
         std::function<void(const SweepCounts&)> after_sweep);
  ~Reaper();

  void start();
  void stop();

  void departed(Owner dead, AttachEvents::Departure how);
  void inherited(Owner old);
  // Nobody has departed, but fewer may be attached than it seemed: as after a sweep.
  void look_again();

  // A dead service has left counts that only an audit sets right.
  void owe_audit();

  // Waits until everything notified so far was swept, holds in transit excepted. Returns false
  // after `timeout_ms`.
  bool wait_until_idle(int timeout_ms);
  // Counts that a death may have left wrong are still to be set right, once nobody is attached.
  bool owes_audit() const { return audit_owed_.load(); }

 private:
  struct Transit {
    TransitHold hold;
    std::int64_t release_at_ns;
  };
  struct Batch {
    std::vector<Owner> dead;       // of which everything goes
    std::vector<Owner> replaced;   // of which the holds stay
    std::vector<Owner> inherited;  // of which only the holds are left
    bool is_look = false;
    bool is_empty() const {
      return dead.empty() && replaced.empty() && inherited.empty() && !is_look;
    }
  };

  void run();
  void sweep(const Batch& batch);
  void release_holds(const std::vector<Owner>& dead);
  void release_expired();
  void release_slot(Owner dead);
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  // Nobody is attached or being reaped but for replaced images.
  bool is_nobody_at_work() const { return clients_.busy_count() == replaced_.size(); }
  void audit();

  const NodeMemory& memory_;
  ClientTable& clients_;
  Audit& audit_;
  const std::function<void(const SweepCounts&)> after_sweep_;
  Actor actor_;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Batch pending_;
  bool busy_ = false;
  unsigned waiting_ = 0;  // threads in wait_until_idle()
  bool stopping_ = false;

  // The thread's own.
  std::vector<Transit> transit_;
  std::vector<Owner> replaced_;  // swept, and nobody has taken over their holds
  std::uint32_t released_since_full_sweep_ = 0;
  std::atomic<bool> audit_owed_{false};
  std::int64_t audit_pause_ns_ = 0;
};

}  // namespace cairn::node
