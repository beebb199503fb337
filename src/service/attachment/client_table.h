// SPDX-License-Identifier: Apache-2.0
// Which process holds which slot of the arena.
//
// Slots are given out oldest-freed first: the 8-bit generation of a slot then wraps as late as
// possible, and the name of a dead owner stays unique until the sweep has passed (see sweep.h).
//
// The table knows which process uses which slot and for which run. The words in the slots are for
// others to read, and clients can write them.
//
// Thread safety: all functions from any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontends/protocol/protocol.h"
#include "memory/tiers/node_memory.h"
#include "service/attachment/attach_events.h"
#include "service/attachment/kept_seats.h"
#include "service/attachment/slot_offers.h"
#include "service/keeping/kept_memory.h"
#include "service/write_back/descriptor_budget.h"

namespace cairn::node {

struct ClientInfo {
  std::uint16_t slot = 0;
  pid_t pid = 0;
  std::uint32_t run = 0;
  std::string command;
};

// A client, and what it has counted.
struct ClientCounts {
  ClientInfo client;
  CounterSums sums;
};

struct ForeignProgram {
  pid_t pid = 0;
  std::uint32_t run = 0;
  std::string command;
  std::string reason;  // why it is not buffered
};

class ClientTable {
 public:
  // The slot of the service itself.
  static constexpr std::uint16_t kServiceSlot = ClientSlot::kOfService;

  ClientTable(NodeMemory& memory, DescriptorBudget& budget, KeptMemory& kept);

  // By a successor, once: the clients of the dead service are its own.
  void adopt();

  Owner service() const { return service_; }
  DescriptorBudget& descriptors() const { return budget_; }

  // From here on some slots are offered to processes that start, while many are free and there are
  // many descriptors; and no more.
  void begin_offers();
  void end_offers();
  // A process that has taken an offered slot by itself: its owner, or nothing when the slot is not
  // the process's. The room of its descriptors was taken with the offer, so nothing can refuse it.
  std::optional<Owner> attach_claimed(const ClientInfo& client, const SlotClaim& claim);
  // Whether slots have been taken whose greetings are to be read still. If so, the reader of
  // greetings is woken.
  bool has_unread_claims() const;
  // Advances while there are such slots. The greetings of all slots that were taken before one look
  // have been read when this is larger by kRoundsOfClaims.
  static constexpr std::uint64_t kRoundsOfClaims = SlotOffers::kRoundsOfStray;
  std::uint64_t claims_round() const;
  // For the reader of greetings: `wake` is called with the table's lock held. has_claims_to_read()
  // wakes nobody. After a round (SlotOffers), end_claims_round() returns whether there is a slot
  // less to wait for.
  void set_claims_reader(std::function<void()> wake);
  bool has_claims_to_read() const;
  bool end_claims_round();

  // The seat of a greeting that the service before this one had answered when it died.
  std::optional<Owner> seat_of(const ClientInfo& client, const SlotClaim& claim) const;
  // A slot for a process, or nothing when all are in use, or too few descriptors are left: `*why`.
  std::optional<Owner> attach(const ClientInfo& client, protocol::UnservedReason* why);
  // From here on everything that the owner holds may be taken over. Returns the dead owner.
  Owner declare_dead(std::uint16_t slot, Departure how);
  // The new image of its process has taken over what it wants of `old`.
  void note_inherited(Owner old);
  // True when the slot's owner has counted anything: only then can it have died with a lock or a
  // lease in hand.
  bool has_worked(std::uint16_t slot) const;
  // The sweep has returned what the slot's dead owner held: counters are kept, the slot is free
  // again.
  void release(std::uint16_t slot);

  std::vector<ClientInfo> active() const;
  // The run of a process, also while its slot, which it has left, is nobody's; 0: not known, or of
  // no run.
  std::uint32_t run_of(Owner owner) const;
  // Those whose owners are dead, and whose slots are not free yet.
  struct Departed {
    Owner owner;
    pid_t pid = 0;
    Departure how = Departure::kDied;
    bool is_inherited = false;
  };
  std::vector<Departed> departed() const;
  std::size_t active_count() const;
  std::size_t active_count(std::uint32_t run) const;
  // Slots that are active, being reaped, or taken.
  std::size_t busy_count() const;
  // Advances whenever a client attaches.
  std::uint64_t attach_count() const;

  // Runs `correct` while no client is attached, being reaped or able to attach, if that holds and
  // nobody attached since attach_count() returned `epoch`. Returns whether it ran.
  // `waiting`: how many of the busy slots are replaced images. Each of them is busy until it is
  // inherited, so equal numbers mean that nobody else is. `correct` must be quick: an attach waits
  // for it.
  template <typename Correct>
  bool if_nobody(std::uint64_t epoch, std::size_t waiting, Correct&& correct) {
    const std::lock_guard lock(mutex_);
    if (busy_ != waiting || attaches_ != epoch) return false;
    const bool is_nobody = withdraw_offers();
    if (is_nobody) correct();
    offer_slots();
    return is_nobody;
  }

  // What the node counted since its start; what one run counted.
  CounterSums totals() const;
  CounterSums run_totals(std::uint32_t run) const;
  // The run's clients one by one: those that are there.
  std::vector<ClientCounts> counted(std::uint32_t run) const;
  // Called with the table's lock held when the slot of a client becomes free; empty: nobody is.
  void set_on_release(std::function<void(const ClientInfo&, const CounterSums&)> on_release);
  bool has_run_attached(std::uint32_t run) const;
  void forget_run(std::uint32_t run);
  // What the run's clients take of the tiers, those that are attached and those to come, is counted
  // for `account`.
  void set_account(std::uint32_t run, AccountId account);

  void note_foreign(const ForeignProgram& program);
  void end_foreign(pid_t pid);
  bool is_foreign(pid_t pid) const;
  std::vector<ForeignProgram> foreign_running() const;
  std::vector<ForeignProgram> foreign_of_run(std::uint32_t run) const;

 private:
  // All these require the lock.
  Owner activate(std::uint16_t slot, const ClientInfo& client);
  void offer_slots();
  bool withdraw_one_offer();
  // False when one has been taken.
  bool withdraw_offers();
  // How many slots have been taken whose greetings are to be read still; wakes their reader.
  std::size_t claims_being_read() const;
  void check_sums() const;

  void publish(std::uint16_t slot);
  ClientInfo client_of(std::uint16_t slot) const;
  void adopt_foreign();
  KeptRun& counts_of(std::uint32_t run);
  const KeptRun* find_counts(std::uint32_t run) const;
  CounterSums sum_of_slot(std::uint16_t slot) const;

  static constexpr std::size_t kForeignPerRunMax = 100;

  NodeMemory& memory_;
  DescriptorBudget& budget_;
  Owner service_;
  mutable std::mutex mutex_;
  std::span<KeptSeat> seats_;      // one for each slot
  std::span<KeptRun> run_counts_;  // in any order
  std::span<KeptForeign> kept_foreign_;
  std::span<CounterSums> departed_;  // one: of clients that have gone
  std::deque<std::uint16_t> free_slots_;
  SlotOffers offers_;
  bool is_offering_ = false;
  std::function<void()> wake_claims_reader_;
  std::function<void(const ClientInfo&, const CounterSums&)> on_release_;
  std::size_t busy_ = 0;
  std::uint64_t attaches_ = 0;
  std::deque<KeptRun> more_runs_;  // than there are places that a successor would find
  std::map<std::uint32_t, std::vector<ForeignProgram>> foreign_of_runs_;
  std::map<pid_t, ForeignProgram> foreign_;
};

}  // namespace cairn::node
