// SPDX-License-Identifier: Apache-2.0
#include "frontends/client/session.h"

#include <errno.h>
#include <fcntl.h>
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/crash_point.h"
#include "base/descriptor_path.h"
#include "base/fence.h"
#include "base/system_call.h"
#include "base/user_copy.h"
#include "frontends/client/descriptor_floor.h"
#include "frontends/client/descriptor_identity.h"
#include "frontends/client/handshake.h"
#include "frontends/client/message_socket.h"
#include "frontends/client/question.h"
#include "frontends/client/slot_taking.h"

namespace cairn {

constinit SessionPlace session_place;

namespace {

// Another description of the same file for the service to keep: flock() locks belong to the
// description, and would live on in the service after the application's last close. For writing
// only: a client of a network file system stores what it holds of a file before it lets anybody
// open it for reading (MooseFS: 170 ms in the middle of a burst). Where the file's mode forbids it
// (created read-only), -1.
int open_again(int fd) {
  return sys::openat(AT_FDCWD, DescriptorPath(fd).text, O_WRONLY | O_CLOEXEC);
}

// A call that needs a service fails when the service does not answer within this, and for so long
// no call asks again.
constexpr int kAnswerMs = LedgerConnection::kAnswerMs;
constexpr std::uint32_t kSilenceMs = 1000;
constexpr int kHungUpTries = 3;
constexpr long kHungUpPauseNs = 2'000'000;

bool is_hung_up(int error) {
  return error == -ECONNRESET || error == -EPIPE || error == -ECONNREFUSED;
}

// Never 0.
std::uint32_t now_ms() { return static_cast<std::uint32_t>(monotonic_ns() / 1'000'000) | 1; }

bool has_failed_lately() {
  const std::uint32_t failed = process_page.silent_ms.load(std::memory_order_relaxed);
  return failed != 0 && now_ms() - failed < kSilenceMs;
}

}  // namespace

void Session::configure(const char* socket_path, std::uint32_t run) {
  if (std::strlen(socket_path) >= sizeof socket_path_) return;
  std::strcpy(socket_path_, socket_path);
  run_ = run;
  user_ = sys::geteuid();
}

Owner Session::self() const {
  return Owner::from_bits(process_page.owner_bits.load(std::memory_order_relaxed));
}

void Session::begin_process() {
  wipe_page_on_fork();
  process_page.pid.store(sys::getpid(), std::memory_order_relaxed);
}

bool Session::attach() {
  if (is_attached()) return true;
  // A vfork child would attach in its parent's name.
  if (is_vfork_child() || !is_configured()) return false;
  if (standing() != Standing::kUnknown || has_failed_lately()) return false;
  LocalGuard guard(process_lock(ProcessLock::kAttach));
  if (is_attached()) return true;
  if (standing() != Standing::kUnknown || has_failed_lately()) return false;
  protocol::UnservedReason why = protocol::UnservedReason::kNone;
  int error = connect_and_attach(&why);
  // A service that hung up may have ended in order a moment ago; its name goes just before.
  for (int tries = 0; tries < kHungUpTries && is_hung_up(error); ++tries) {
    const timespec pause{0, kHungUpPauseNs};
    sys::call(SYS_nanosleep, sys::word(&pause), 0);
    error = connect_and_attach(&why);
  }
  if (error == 0) {
    tune_user_copy();
    return true;
  }
  const Standing stands = standing_after(error, why);
  if (stands == Standing::kUnknown)
    process_page.silent_ms.store(now_ms(), std::memory_order_relaxed);
  process_page.standing.store(stands, std::memory_order_release);
  return false;
}

Standing Session::standing_after(int error, protocol::UnservedReason why) {
  if (why == protocol::UnservedReason::kNone) return standing_after_contact(error);
  unserved_why_ = why;
  return tell_unserved(program_invocation_short_name, why) == 0 ? Standing::kUnserved
                                                                : Standing::kUnknown;
}

// The process's standing after an attempt to reach the node has failed.
Standing Session::standing_after_contact(int error) const {
  // Memory from before a fork knows better than a path, which another root may hide.
  // Another word than this says that something may be left in the memory alone.
  const bool is_ended =
      has_memory_ && memory_.service_board().detached.load() == ServiceBoard::kEndedInOrder;
  switch (error) {
    case -ENOENT:
    case -ENOTDIR:
      return is_ended || !has_memory_ ? Standing::kEnded : Standing::kUnknown;
    case -EACCES:
    case -EPERM:
      return Standing::kOutside;
    default:
      break;
  }
  if (is_ended) return Standing::kEnded;
  struct ::statx status;
  const bool is_others = is_hung_up(error) &&
                         sys::statx(AT_FDCWD, socket_path_, 0, STATX_UID, &status) == 0 &&
                         status.stx_uid != sys::geteuid();
  return is_others ? Standing::kOutside : Standing::kUnknown;
}

int Session::connect_and_attach(protocol::UnservedReason* why) {
  wipe_page_on_fork();
  const Owner parent = std::exchange(last_owner_, Owner());
  if (is_test_) return -ENOENT;
  if (shares_descriptors_ && socket_ >= 0) shared_socket_ = std::exchange(socket_, -1);
  if (socket_ >= 0)
    sys::close(std::exchange(socket_, -1));  // the parent's: it must not be kept alive here
  const int socket = connect_seqpacket(socket_path_, descriptor_floor(), kAnswerMs);
  CAIRN_CRASH_POINT("client.connected");
  if (socket < 0) return socket;
  const int error = greet(socket, why);
  if (error < 0) {
    sys::close(socket);
    last_owner_ = parent;
    return error;
  }
  CAIRN_CRASH_POINT("client.taken");
  socket_ = socket;
  socket_inode_ = inode_of(socket);
  inherited_owner_ = parent;
  publish(greeted_as_);
  if (parent && child_handler_ != nullptr) child_handler_(parent);
  return 0;
}

// An offered slot of the node, in the memory that this process has from its parent or finds now.
SlotClaim Session::claim_slot(int socket, std::optional<NoticedMemory>* found) const {
  const std::int32_t service = peer_process(socket);
  const auto notice = read_notice(socket_path_, service);
  if (!notice || service <= 0) return {};
  if (has_memory_ && notice->control.inode != memory_inode_) return {};
  if (!has_memory_ && !(*found = map_noticed(*notice))) return {};
  return choose_offer(has_memory_ ? memory_ : (*found)->memory, socket, service);
}

// Gets a slot and the node's memory: takes an offered slot, or waits for the node's welcome.
int Session::greet(int socket, protocol::UnservedReason* why) {
  std::optional<NoticedMemory> found;
  const SlotClaim claim = claim_slot(socket, &found);
  const pid_t self = sys::getpid();
  if (const int error = say_hello(socket, run_, claim); error < 0) return error;
  CAIRN_CRASH_POINT("client.greeted");
  greeted_as_ =
      claim ? take_slot(has_memory_ ? memory_ : found->memory, claim, {self, run_}) : Owner();
  // A signal handler has forked meanwhile: the slot is the parent's, and the child greets anew.
  if (claim && sys::getpid() != self) return -ECONNRESET;
  if (greeted_as_) {
    if (found) keep_memory(std::move(found->memory), found->tier_fds, found->control_inode);
    return 0;
  }
  found.reset();
  Greeting greeting;
  tell_of_long_wait(socket, run_);
  if (const int error = await_welcome(socket, &greeting); error < 0) {
    *why = greeting.refusal;
    return error;
  }
  const protocol::Welcome& welcome = greeting.welcome;
  *why = adopt_memory(welcome, greeting.message.descriptors, greeting.message.descriptor_count);
  if (*why != protocol::UnservedReason::kNone) {
    decline(socket);
    return -ENOMEM;
  }
  greeted_as_ = Owner(static_cast<std::uint16_t>(welcome.slot),
                      static_cast<std::uint8_t>(welcome.generation));
  return 0;
}

protocol::UnservedReason Session::adopt_memory(const protocol::Welcome& welcome,
                                               const int* descriptors, unsigned count) {
  using protocol::UnservedReason;
  unsigned expected = 2;
  for (unsigned tier = 1; tier < kTiersMax; ++tier) {
    if (welcome.shape.tier_bytes[tier] != 0) ++expected;
  }
  const std::uint64_t inode = count >= 1 ? inode_of(descriptors[0]) : 0;
  if (count < expected || has_memory_) {
    // A forked child: the parent's mappings serve, if they are of the same node. Tables of another
    // node must not be mixed with records that point into the old ones.
    for (unsigned index = 0; index < count; ++index) sys::close(descriptors[index]);
    if (has_memory_ && inode != 0)
      return inode == memory_inode_ ? UnservedReason::kNone : UnservedReason::kFailed;
    return UnservedReason::kNoDescriptors;
  }
  // The segments' own descriptors are closed as soon as they are mapped.
  std::array<int, kTiersMax> tiers;
  tiers.fill(-1);
  unsigned next = 2;
  for (unsigned tier = 1; tier < kTiersMax; ++tier) {
    if (welcome.shape.tier_bytes[tier] != 0) tiers[tier] = move_high(descriptors[next++]);
  }
  CAIRN_DCHECK(next == expected);
  while (next < count) sys::close(descriptors[next++]);
  Result<NodeMemory> memory =
      NodeMemory::attach(welcome.shape, descriptors[0], descriptors[1], tiers);
  if (!memory) return UnservedReason::kNoMemory;
  keep_memory(std::move(memory.value()), tiers, inode);
  return UnservedReason::kNone;
}

void Session::keep_memory(NodeMemory memory, const std::array<int, kTiersMax>& tiers,
                          std::uint64_t inode) {
  CAIRN_DCHECK(!has_memory_ && inode != 0);
  memory_ = std::move(memory);
  memory_.owners().watch_with(this);
  memory_inode_ = inode;
  has_memory_ = true;
  for (unsigned tier = 1; tier < kTiersMax; ++tier) tier_fds_[tier] = tiers[tier];
}

void Session::publish(Owner self) {
  last_owner_ = self;
  process_page.owner_bits.store(self.bits(), std::memory_order_relaxed);
  process_page.pid.store(sys::getpid(), std::memory_order_relaxed);
  last_epoch_ = last_epoch_ + 1 == 0 ? 1 : last_epoch_ + 1;
  CAIRN_DCHECK(self && last_epoch_ != 0);
  process_page.epoch.store(last_epoch_, std::memory_order_release);
}

Actor* Session::enter_thread() {
  if (!attach()) return nullptr;
  ThreadState& state = thread_state;
  // What a fork left here belongs to the parent: forgotten, not given back.
  std::byte* bounce = state.actor.bounce;
  new (&state.actor) Actor();
  state.actor.bounce = bounce;
  state.actor.memory = &memory_;
  state.actor.self = self();
  CAIRN_DCHECK(state.actor.self && state.actor.self.slot() < memory_.slot_count());
  ClientSlot& slot = memory_.slot(state.actor.self.slot());
  const std::uint32_t worker = slot.workers.fetch_add(1, std::memory_order_relaxed);
  state.actor.counters = &slot.shards[worker % ClientSlot::kShards];
  state.epoch = process_page.epoch.load(std::memory_order_acquire);
  if (thread_handler_ != nullptr) thread_handler_(&state);
  return &state.actor;
}

void Session::leave_thread() {
  ThreadState& state = thread_state;
  if (state.epoch != process_page.epoch.load(std::memory_order_acquire)) return;
  state.actor.waits.tell_all(memory_, state.actor.self);
  state.actor.drop_leases();
  state.epoch = UINT32_MAX;
}

bool Session::hand_over(ObjectIndex object, const Backing& backing) {
  if (is_test_) {
    if (test_takes_descriptors_) memory_.objects().at(object).set(kObjectHandedOver);
    return test_takes_descriptors_;
  }
  const int fd = backing.descriptor();
  if (!is_attached() || fd < 0) return false;
  if (memory_.service_board().detached.load(std::memory_order_relaxed) != 0) return false;
  const Owner owner = self();
  CAIRN_DCHECK(object != ObjectIndex::kNone);
  DescriptorReservation reservation(memory_.descriptor_room(), memory_.slot(owner.slot()).sending);
  if (!reservation) return false;
  protocol::ObjectMessage message;
  message.header.type = protocol::Type::kObjectDescriptor;
  message.object = raw(object);
  message.descriptor = fd;
  // Closing one would drop the process's fcntl() locks on the file: the service then opens it again
  // when it gets the descriptor.
  const bool may_close = lock_probe_ == nullptr || !lock_probe_(object);
  const int own = may_close ? open_again(fd) : -1;
  message.is_lent = own >= 0 ? 0 : 1;
  CAIRN_CRASH_POINT("client.handing-over");
  const int sent = send_message(socket_, &message, sizeof message, own >= 0 ? own : fd);
  CAIRN_CRASH_POINT("client.handed-over");
  if (own >= 0) {
    sys::close(own);
  } else {
    has_lent_.store(true, std::memory_order_relaxed);
  }
  // A signal handler may have forked: the reservation is the parent's.
  if (sent == 0 || self() != owner) reservation.sent();
  if (sent < 0) return false;
  Object& record = memory_.objects().at(object);
  record.set(kObjectHandedOver);
  // The service may have left since the look above, and have cleared all marks before this one was
  // set: nobody may read the descriptor any more.
  fence(std::memory_order_seq_cst);
  if (memory_.service_board().detached.load() == ServiceBoard::kAttached) return true;
  record.clear(kObjectHandedOver);
  return false;
}

void Session::await_arrivals() const {
  if (is_test_ || !is_attached()) return;
  constexpr timespec kPause{0, 50'000};
  constexpr unsigned kPausesMax = 20'000;
  const std::atomic<std::uint32_t>& sending = memory_.slot(self().slot()).sending;
  for (unsigned pauses = 0; sending.load(std::memory_order_acquire) != 0; ++pauses) {
    if (pauses == kPausesMax) return;
    sys::call(SYS_nanosleep, sys::word(&kPause), 0);
  }
}

void Session::discarded(ObjectIndex object) {
  protocol::ObjectMessage message;
  message.header.type = protocol::Type::kDiscarded;
  message.object = raw(object);
  notify(message);
}

int Session::keep_through(int fd, protocol::UnservedReason why) {
  if (is_test_) return 0;
  protocol::UnservedMessage message;
  message.header.type = protocol::Type::kKeepThrough;
  message.run = run_;
  message.reason = why;
  return ledger_.keep_through(socket_path_, message, fd);
}

int Session::use_unserved(int fd) { return take_unserved(fd, DescriptionIndex::kNone, 0); }

int Session::take_unserved(int fd, DescriptionIndex description, std::uint32_t generation) {
  if (!is_configured() || is_test_) return 0;
  const Standing stands = standing();
  if (stands == Standing::kEnded) return 0;
  // The node of another user does not even answer a question about the parent's buffered files.
  if (stands == Standing::kOutside) return description == DescriptionIndex::kNone ? 0 : -EIO;
  if (stands == Standing::kUnknown && !is_vfork_child()) return -EIO;
  protocol::UnservedMessage message;
  message.header.type = protocol::Type::kKeepThrough;
  message.run = run_;
  message.reason = unserved_why_;
  message.description = raw(description);
  message.generation = generation;
  return keep_unserved(message, fd);
}

int Session::keep_unserved(const protocol::UnservedMessage& message, int fd) {
  int error = ledger_.keep_through(socket_path_, message, fd);
  for (int tries = 0; tries < kHungUpTries && is_hung_up(error); ++tries)
    error = ledger_.keep_through(socket_path_, message, fd);
  if (error >= 0) return error;
  if (standing_after_contact(error) != Standing::kEnded) return -EIO;
  process_page.standing.store(Standing::kEnded, std::memory_order_release);
  return 0;
}

int Session::tell_unserved(const char* command, protocol::UnservedReason why) {
  protocol::UnservedMessage message;
  message.header.type = protocol::Type::kUnserved;
  message.run = run_;
  message.reason = why;
  std::strncpy(message.command, command, sizeof message.command - 1);
  return ledger_.tell_unserved(socket_path_, message);
}

void Session::store_everything_unserved(const char* command) {
  if (standing() == Standing::kUnserved) (void)tell_unserved(command, unserved_why_);
}

bool Session::is_gone(Owner owner) const {
  return is_gone_with_service(memory_, {socket_, socket_inode_}, self(), owner);
}

void Session::notify(const protocol::ObjectMessage& message) {
  if (socket_ >= 0 && is_attached()) send_message(socket_, &message, sizeof message, -1);
}

bool Session::notify(const protocol::ArrayReadMessage& message) {
  return socket_ >= 0 && is_attached() && send_hint(socket_, &message, sizeof message) == 0;
}

bool Session::notify(const protocol::ArrayNewsMessage& message) {
  return socket_ >= 0 && is_attached() && send_hint(socket_, &message, sizeof message) == 0;
}

bool Session::notify(const protocol::PackedReadMessage& message) {
  return socket_ >= 0 && is_attached() && send_hint(socket_, &message, sizeof message) == 0;
}

void Session::notify_inherited() {
  if (!is_attached()) return ledger_.tell_inherited();
  protocol::Header message;
  message.type = protocol::Type::kInherited;
  if (socket_ >= 0) send_message(socket_, &message, sizeof message, -1);
}

void Session::notify_foreign(const char* command, const char* reason) {
  if (!attach()) {
    if (standing() == Standing::kUnserved || is_vfork_child())
      (void)tell_unserved(command, unserved_why_);
    return;
  }
  if (socket_ < 0) return;
  protocol::ForeignMessage message;
  std::strncpy(message.reason, reason, sizeof message.reason - 1);
  std::strncpy(message.command, command, sizeof message.command - 1);
  send_message(socket_, &message, sizeof message, -1);
}

bool Session::owns_descriptor(int fd) const {
  if (fd < 0) return false;
  if (ledger_.owns(fd, socket_path_)) return true;
  if (!has_memory_) return false;
  if (fd == socket_ || fd == shared_socket_) return true;
  if (fd == memory_.control().fd() || fd == memory_.data().fd()) return true;
  for (const int tier_fd : tier_fds_) {
    if (fd == tier_fd) return true;
  }
  return false;
}

int Session::highest_descriptor() const {
  if (!has_memory_) return ledger_.highest_descriptor();
  int highest = std::max(
      {ledger_.highest_descriptor(), socket_, memory_.control().fd(), memory_.data().fd()});
  for (const int tier_fd : tier_fds_) highest = std::max(highest, tier_fd);
  return highest;
}

bool Session::relocate_descriptor(int fd) {
  // The segments' descriptors have served once the memory is mapped; only the socket is moved. A
  // tier's number stays: the caller answers EBUSY as the kernel does for a number that is about to
  // be used.
  if (ledger_.owns(fd, socket_path_)) return ledger_.move_away_from(fd);
  if (fd == socket_) {
    const int moved = sys::fcntl(fd, F_DUPFD_CLOEXEC, fd + 1);
    if (moved < 0) return false;
    socket_ = moved;
    return true;
  }
  return fd == memory_.control().fd() || fd == memory_.data().fd();
}

void Session::install_for_test(NodeMemory memory, Owner self, bool takes_descriptors) {
  wipe_page_on_fork();
  memory_ = std::move(memory);
  has_memory_ = true;
  is_test_ = true;
  test_takes_descriptors_ = takes_descriptors;
  std::strcpy(socket_path_, "(test)");
  publish(self);
}

}  // namespace cairn
