// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/client_table.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace cairn::node {
namespace {

void copy_text(char* to, std::size_t size, const std::string& text) {
  const std::size_t length = std::min(text.size(), size - 1);
  text.copy(to, length);
  std::memset(to + length, 0, size - length);
}

void add_to(CounterSums& sums, const CounterSums& more) {
  for (unsigned counter = 0; counter < kCounters; ++counter) sums[counter] += more[counter];
}

}  // namespace

// More runs than these are rare at a time.
constexpr std::size_t kRunsKept = 256;
constexpr std::size_t kForeignKept = 1024;

ClientTable::ClientTable(NodeMemory& memory, DescriptorBudget& budget, KeptMemory& kept)
    : memory_(memory),
      budget_(budget),
      service_(memory.owners().current(kServiceSlot)),
      seats_(kept.take<KeptSeat>(memory.slot_count())),
      run_counts_(kept.take<KeptRun>(kRunsKept)),
      kept_foreign_(kept.take<KeptForeign>(kForeignKept)),
      departed_(kept.take<CounterSums>(1)),
      offers_(memory, kept) {
  CAIRN_CHECK(memory.slot_count() > kServiceSlot);
  for (std::uint32_t slot = kServiceSlot + 1; slot < memory.slot_count(); ++slot) {
    if (seats_[slot].state == SlotState::kFree && !offers_.is_offered(slot))
      free_slots_.push_back(static_cast<std::uint16_t>(slot));
  }
  ClientSlot& own = memory.slot(kServiceSlot);
  own.pid.store(::getpid());
  copy_text(own.command, sizeof own.command, "cairn node-service");
  own.state.store(SlotState::kActive, std::memory_order_release);
  seats_[kServiceSlot].state = SlotState::kActive;
}

void ClientTable::adopt() {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t slot = kServiceSlot + 1; slot < seats_.size(); ++slot) {
    if (seats_[slot].state == SlotState::kFree) continue;
    offers_.end_of(slot);  // which the death came before
    const bool is_dead = seats_[slot].state == SlotState::kReaping;
    const auto index = static_cast<std::uint16_t>(slot);
    if (is_dead && memory_.owners().current(index).bits() == seats_[slot].owner_bits)
      memory_.owners().advance(index);
    if (!is_dead) publish(index);
    ++busy_;
    ++attaches_;
  }
  budget_.adopt_clients_to_come(offers_.count());
  adopt_foreign();
  check_sums();
}

void ClientTable::adopt_foreign() {
  for (const KeptForeign& each : kept_foreign_) {
    if (each.pid == 0) continue;
    foreign_[each.pid] =
        ForeignProgram{each.pid, each.run, each.command, "it was not before the service's death"};
    foreign_of_runs_[each.run].push_back(foreign_[each.pid]);
  }
  memory_.unserved_board().foreign_programs.store(static_cast<std::uint32_t>(foreign_.size()),
                                                  std::memory_order_release);
}

KeptRun& ClientTable::counts_of(std::uint32_t run) {
  KeptRun* free = nullptr;
  for (KeptRun& each : run_counts_) {
    if (each.is_used && each.run == run) return each;
    if (!each.is_used && free == nullptr) free = &each;
  }
  for (KeptRun& each : more_runs_) {
    if (each.run == run) return each;
  }
  KeptRun& made = free != nullptr ? *free : more_runs_.emplace_back();
  made = KeptRun{};
  made.run = run;
  made.is_used = true;
  return made;
}

const KeptRun* ClientTable::find_counts(std::uint32_t run) const {
  const auto is_its = [run](const KeptRun& each) { return each.is_used && each.run == run; };
  const auto kept = std::find_if(run_counts_.begin(), run_counts_.end(), is_its);
  if (kept != run_counts_.end()) return &*kept;
  const auto more = std::find_if(more_runs_.begin(), more_runs_.end(), is_its);
  return more == more_runs_.end() ? nullptr : &*more;
}

ClientInfo ClientTable::client_of(std::uint16_t slot) const {
  const KeptSeat& seat = seats_[slot];
  return ClientInfo{slot, seat.pid, seat.run, seat.command};
}

void ClientTable::check_sums() const {
  CAIRN_CHECK(busy_ + free_slots_.size() + offers_.count() == seats_.size() - kServiceSlot - 1);
}

void ClientTable::begin_offers() {
  const std::lock_guard lock(mutex_);
  is_offering_ = true;
  offer_slots();
}

void ClientTable::end_offers() {
  const std::lock_guard lock(mutex_);
  is_offering_ = false;
  (void)withdraw_offers();
}

// Offers are for the many: where slots or descriptors are short, each process asks for its own.
void ClientTable::offer_slots() {
  constexpr std::size_t kLeftFree = std::size_t{4} * SlotOffers::kMost;
  while (is_offering_ && offers_.count() < SlotOffers::kMost && free_slots_.size() > kLeftFree &&
         budget_.take_client_of_many()) {
    offers_.add(free_slots_.front());
    free_slots_.pop_front();
  }
  check_sums();
}

bool ClientTable::withdraw_one_offer() {
  const std::optional<std::uint16_t> slot = offers_.withdraw_one();
  if (!slot) return false;
  budget_.give_back_client_to_come();
  free_slots_.push_front(*slot);
  return true;
}

bool ClientTable::withdraw_offers() {
  while (withdraw_one_offer()) {
  }
  return claims_being_read() == 0;
}

std::size_t ClientTable::claims_being_read() const {
  const unsigned count = offers_.taken_count();
  if (count != 0 && wake_claims_reader_) wake_claims_reader_();
  return count;
}

std::optional<Owner> ClientTable::attach_claimed(const ClientInfo& client, const SlotClaim& claim) {
  if (const std::optional<Owner> known = seat_of(client, claim)) return known;
  const std::lock_guard lock(mutex_);
  if (!offers_.grant(claim)) return std::nullopt;
  budget_.client_has_come();
  // The seat before the end of the offer: after a death between them the slot is taken, not free.
  const Owner owner = activate(static_cast<std::uint16_t>(claim.slot), client);
  offers_.end_of(claim.slot);
  offer_slots();
  return owner;
}

std::optional<Owner> ClientTable::seat_of(const ClientInfo& client, const SlotClaim& claim) const {
  const std::lock_guard lock(mutex_);
  if (claim.slot <= kServiceSlot || claim.slot >= seats_.size()) return std::nullopt;
  const KeptSeat& seat = seats_[claim.slot];
  const auto index = static_cast<std::uint16_t>(claim.slot);
  const bool is_its = seat.state == SlotState::kActive && seat.pid == client.pid &&
                      memory_.slot(index).offer.take(claim);
  if (!is_its) return std::nullopt;
  return memory_.owners().current(index);
}

bool ClientTable::has_unread_claims() const {
  const std::lock_guard lock(mutex_);
  return claims_being_read() != 0;
}

std::uint64_t ClientTable::claims_round() const {
  const std::lock_guard lock(mutex_);
  return offers_.round();
}

void ClientTable::set_claims_reader(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_claims_reader_ = std::move(wake);
}

bool ClientTable::has_claims_to_read() const {
  const std::lock_guard lock(mutex_);
  return offers_.taken_count() != 0;
}

bool ClientTable::end_claims_round() {
  const std::lock_guard lock(mutex_);
  return offers_.end_round();
}

std::optional<Owner> ClientTable::attach(const ClientInfo& client, protocol::UnservedReason* why) {
  const std::lock_guard lock(mutex_);
  if (!free_slots_.empty() && budget_.take_client()) {
    const std::uint16_t index = free_slots_.front();
    free_slots_.pop_front();
    return activate(index, client);
  }
  // A process that has come goes before those that may come: an offer has a slot, and room for
  // descriptors.
  if (const std::optional<std::uint16_t> offered = offers_.withdraw_one()) {
    budget_.client_has_come();
    return activate(*offered, client);
  }
  *why = free_slots_.empty() ? protocol::UnservedReason::kNoSlot
                             : protocol::UnservedReason::kNoNumbers;
  return std::nullopt;
}

// What the seat says, in the slot that everybody sees.
void ClientTable::publish(std::uint16_t index) {
  ClientSlot& slot = memory_.slot(index);
  const KeptSeat& seat = seats_[index];
  slot.pid.store(seat.pid, std::memory_order_relaxed);
  slot.run.store(seat.run, std::memory_order_relaxed);
  copy_text(slot.command, sizeof slot.command, seat.command);
  KeptRun& run = counts_of(seat.run);
  run.attached = true;
  slot.account.store(raw(run.account), std::memory_order_relaxed);
  slot.state.store(SlotState::kActive, std::memory_order_release);
}

Owner ClientTable::activate(std::uint16_t index, const ClientInfo& client) {
  CAIRN_CHECK(seats_[index].state == SlotState::kFree);
  const Owner owner = memory_.owners().current(index);
  KeptSeat& seat = seats_[index];
  seat.pid = client.pid;
  seat.run = client.run;
  seat.owner_bits = owner.bits();
  seat.is_inherited = false;
  copy_text(seat.command, sizeof seat.command, client.command);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // what a death leaves is in this order
  seat.state = SlotState::kActive;
  publish(index);
  ++busy_;
  ++attaches_;
  return owner;
}

Owner ClientTable::declare_dead(std::uint16_t slot, Departure how) {
  const std::lock_guard lock(mutex_);
  CAIRN_CHECK(slot != kServiceSlot);
  CAIRN_CHECK(slot < seats_.size());
  CAIRN_CHECK(seats_[slot].state == SlotState::kActive);
  // A takeover that waited for it may have found out before: then the name has changed already.
  const Owner dead = Owner::from_bits(seats_[slot].owner_bits);
  seats_[slot].how = how;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  seats_[slot].state = SlotState::kReaping;
  // First: a successor notes what the slots in this state were writing.
  memory_.slot(slot).state.store(SlotState::kReaping, std::memory_order_release);
  // Waiters for a lock of the dead go on from this instant.
  memory_.owners().advance(slot);
  return dead;
}

void ClientTable::note_inherited(Owner old) {
  const std::lock_guard lock(mutex_);
  KeptSeat& seat = seats_[old.slot()];
  if (seat.state == SlotState::kReaping && seat.owner_bits == old.bits()) seat.is_inherited = true;
}

std::vector<ClientTable::Departed> ClientTable::departed() const {
  const std::lock_guard lock(mutex_);
  std::vector<Departed> all;
  for (const KeptSeat& seat : seats_) {
    if (seat.state == SlotState::kReaping)
      all.push_back(
          Departed{Owner::from_bits(seat.owner_bits), seat.pid, seat.how, seat.is_inherited});
  }
  return all;
}

CounterSums ClientTable::sum_of_slot(std::uint16_t index) const {
  CounterSums sums{};
  for (const CounterShard& shard : memory_.slot(index).shards) {
    for (unsigned counter = 0; counter < kCounters; ++counter) {
      sums[counter] += shard.get(static_cast<Counter>(counter));
    }
  }
  // The hit path counts as little as it can: hits are reads too, and time is in cycles until
  // somebody asks.
  const auto sum = [&sums](Counter counter) -> std::uint64_t& {
    return sums[static_cast<unsigned>(counter)];
  };
  sum(Counter::kReads) += sum(Counter::kReadHits);
  sum(Counter::kReadBytes) += sum(Counter::kPlainHitBytes);
  sum(Counter::kHitBytesMemory) += sum(Counter::kPlainHitBytes);
  std::uint64_t& time = sum(Counter::kIoCycles);
  time = memory_.identity().started.to_nanos(time);
  return sums;
}

bool ClientTable::has_worked(std::uint16_t index) const {
  return memory_.slot(index).workers.load(std::memory_order_acquire) != 0;
}

void ClientTable::release(std::uint16_t index) {
  const std::lock_guard lock(mutex_);
  CAIRN_CHECK(index != kServiceSlot);
  CAIRN_CHECK(seats_[index].state == SlotState::kReaping);
  ClientSlot& slot = memory_.slot(index);
  const CounterSums sums = sum_of_slot(index);
  add_to(departed_[0], sums);
  if (find_counts(seats_[index].run) != nullptr) add_to(counts_of(seats_[index].run).sums, sums);
  if (on_release_) on_release_(client_of(index), sums);
  for (CounterShard& shard : slot.shards) {
    for (auto& value : shard.values) value.store(0, std::memory_order_relaxed);
    shard.writing.store(0, std::memory_order_relaxed);
  }
  memory_.service_board().openings.fetch_sub(slot.openings.exchange(0));
  budget_.give_back_client(index);
  slot.workers.store(0, std::memory_order_relaxed);
  memory_.events(index).demands.store(0, std::memory_order_relaxed);
  slot.pid.store(0, std::memory_order_relaxed);
  slot.run.store(0, std::memory_order_relaxed);
  slot.account.store(raw(AccountId::kNobody), std::memory_order_relaxed);
  slot.offer.clear();
  slot.state.store(SlotState::kFree, std::memory_order_release);
  seats_[index].state = SlotState::kFree;
  free_slots_.push_back(index);
  --busy_;
  offer_slots();
}

std::vector<ClientInfo> ClientTable::active() const {
  const std::lock_guard lock(mutex_);
  std::vector<ClientInfo> clients;
  for (std::uint32_t index = kServiceSlot + 1; index < seats_.size(); ++index) {
    if (seats_[index].state == SlotState::kActive)
      clients.push_back(client_of(static_cast<std::uint16_t>(index)));
  }
  return clients;
}

std::uint32_t ClientTable::run_of(Owner owner) const {
  const std::uint16_t slot = owner.slot();
  if (slot <= kServiceSlot || slot >= seats_.size()) return 0;
  const std::lock_guard lock(mutex_);
  if (seats_[slot].owner_bits == owner.bits()) return seats_[slot].run;
  // It has taken the slot by itself, and its greeting is on its way.
  const bool is_here = memory_.owners().current(slot) == owner;
  return is_here ? memory_.slot(slot).run.load(std::memory_order_relaxed) : 0;
}

std::size_t ClientTable::active_count() const { return active().size(); }

std::size_t ClientTable::active_count(std::uint32_t run) const {
  const std::vector<ClientInfo> clients = active();
  return static_cast<std::size_t>(std::count_if(
      clients.begin(), clients.end(), [run](const ClientInfo& c) { return c.run == run; }));
}

std::size_t ClientTable::busy_count() const {
  const std::lock_guard lock(mutex_);
  return busy_ + claims_being_read();
}

std::uint64_t ClientTable::attach_count() const {
  const std::lock_guard lock(mutex_);
  return attaches_;
}

CounterSums ClientTable::totals() const {
  const std::lock_guard lock(mutex_);
  CounterSums sums = departed_[0];
  for (std::uint32_t index = kServiceSlot; index < seats_.size(); ++index) {
    if (seats_[index].state != SlotState::kFree)
      add_to(sums, sum_of_slot(static_cast<std::uint16_t>(index)));
  }
  return sums;
}

CounterSums ClientTable::run_totals(std::uint32_t run) const {
  const std::lock_guard lock(mutex_);
  CounterSums sums{};
  if (const KeptRun* found = find_counts(run); found != nullptr) sums = found->sums;
  for (std::uint32_t index = kServiceSlot + 1; index < seats_.size(); ++index) {
    const KeptSeat& seat = seats_[index];
    if (seat.state == SlotState::kFree || seat.run != run) continue;
    add_to(sums, sum_of_slot(static_cast<std::uint16_t>(index)));
  }
  return sums;
}

std::vector<ClientCounts> ClientTable::counted(std::uint32_t run) const {
  const std::lock_guard lock(mutex_);
  std::vector<ClientCounts> counts;
  for (std::uint32_t index = kServiceSlot + 1; index < seats_.size(); ++index) {
    if (seats_[index].state == SlotState::kFree || seats_[index].run != run) continue;
    const auto slot = static_cast<std::uint16_t>(index);
    counts.push_back({client_of(slot), sum_of_slot(slot)});
  }
  CAIRN_CHECK(counts.size() <= seats_.size());
  return counts;
}

void ClientTable::set_on_release(
    std::function<void(const ClientInfo&, const CounterSums&)> on_release) {
  const std::lock_guard lock(mutex_);
  on_release_ = std::move(on_release);
}

bool ClientTable::has_run_attached(std::uint32_t run) const {
  const std::lock_guard lock(mutex_);
  const KeptRun* found = find_counts(run);
  return found != nullptr && found->attached;
}

void ClientTable::forget_run(std::uint32_t run) {
  const std::lock_guard lock(mutex_);
  foreign_of_runs_.erase(run);
  if (find_counts(run) != nullptr) counts_of(run).is_used = false;
  std::erase_if(more_runs_, [](const KeptRun& each) { return !each.is_used; });
}

void ClientTable::set_account(std::uint32_t run, AccountId account) {
  const std::lock_guard lock(mutex_);
  counts_of(run).account = account;
  for (std::atomic<std::uint32_t>& whose : memory_.accounts().runs) {
    if (whose.load(std::memory_order_relaxed) == run) whose.store(0, std::memory_order_relaxed);
  }
  if (account != AccountId::kNobody)
    memory_.accounts().runs[raw(account)].store(run, std::memory_order_relaxed);
  for (std::uint32_t index = kServiceSlot + 1; index < seats_.size(); ++index) {
    const KeptSeat& seat = seats_[index];
    if (seat.state == SlotState::kFree || seat.run != run) continue;
    memory_.slot(static_cast<std::uint16_t>(index))
        .account.store(raw(account), std::memory_order_relaxed);
  }
}

void ClientTable::note_foreign(const ForeignProgram& program) {
  const std::lock_guard lock(mutex_);
  std::vector<ForeignProgram>& of_run = foreign_of_runs_[program.run];
  if (of_run.size() < kForeignPerRunMax) of_run.push_back(program);
  if (foreign_.insert_or_assign(program.pid, program).second) {
    const auto free = std::find_if(kept_foreign_.begin(), kept_foreign_.end(),
                                   [](const KeptForeign& each) { return each.pid == 0; });
    if (free != kept_foreign_.end()) {
      free->run = program.run;
      copy_text(free->command, sizeof free->command, program.command);
      free->pid = program.pid;
    }
    memory_.unserved_board().foreign_programs.fetch_add(1, std::memory_order_acq_rel);
  }
}

void ClientTable::end_foreign(pid_t pid) {
  const std::lock_guard lock(mutex_);
  if (foreign_.erase(pid) != 0) {
    for (KeptForeign& each : kept_foreign_)
      if (each.pid == pid) each.pid = 0;
    memory_.unserved_board().foreign_programs.fetch_sub(1, std::memory_order_acq_rel);
  }
}

bool ClientTable::is_foreign(pid_t pid) const {
  const std::lock_guard lock(mutex_);
  return foreign_.contains(pid);
}

std::vector<ForeignProgram> ClientTable::foreign_running() const {
  const std::lock_guard lock(mutex_);
  std::vector<ForeignProgram> programs;
  for (const auto& entry : foreign_) programs.push_back(entry.second);
  return programs;
}

std::vector<ForeignProgram> ClientTable::foreign_of_run(std::uint32_t run) const {
  const std::lock_guard lock(mutex_);
  const auto found = foreign_of_runs_.find(run);
  return found == foreign_of_runs_.end() ? std::vector<ForeignProgram>() : found->second;
}

}  // namespace cairn::node
