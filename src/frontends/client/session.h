// SPDX-License-Identifier: Apache-2.0
// A process's attachment to its node: connect, handshake, map; one owner for the process, an Actor
// per thread.
//
// A forked child must not work under its parent's owner. The session's state lives in a page that
// the kernel wipes on fork (MADV_WIPEONFORK), so the child finds itself not attached, whatever way
// it was forked, and attaches anew at its first call; the memory that the parent had mapped is
// kept. A vfork child shares the page and works in the name of its suspended parent.
//
// Thread safety: attach() and actor() from any thread. Signal handlers: actor() of a thread that
// has one.
// Ownership: one per process, never destroyed (stdio streams are flushed after destructors).
#pragma once

#include <sys/un.h>

#include <array>
#include <cstdint>
#include <optional>

#include "base/system_call.h"
#include "frontends/client/dead_service.h"
#include "frontends/client/ledger_connection.h"
#include "frontends/client/noticed_memory.h"
#include "frontends/client/process_page.h"
#include "frontends/protocol/question.h"
#include "memory/buffer/hand_over.h"
#include "memory/tiers/actor.h"

namespace cairn {

class Session final : public HandOver, public OwnerWatch {
 public:
  // The process's session. Does not attach.
  static Session& instance();

  // A process has begun, by exec or fork: what it finds out from here on is its own.
  static void begin_process();
  // Attaches to the node at `socket_path` if this process is not attached; cheap when it is.
  // Returns false when the process is not served: what it opens goes through use_unserved().
  bool attach();
  Standing standing() const { return process_page.standing.load(std::memory_order_relaxed); }
  // Whether this process knows neither what the tiers have nor that they have nothing: it must not
  // use managed files. That is known once attach() was tried.
  bool is_blind() const {
    return is_configured() && !is_attached() && !is_vfork_child() &&
           standing() == Standing::kUnknown;
  }
  void configure(const char* socket_path, std::uint32_t run);
  bool is_configured() const { return socket_path_[0] != '\0'; }
  bool is_attached() const { return process_page.epoch.load(std::memory_order_acquire) != 0; }

  // The process has become another user than it was when it began (setuid): what it starts could
  // not attach.
  uid_t user() const { return user_; }
  bool has_other_user() const { return is_configured() && sys::geteuid() != user_; }

  // Requires: attached (or attached in a parent process: the mapping is inherited).
  const NodeMemory& memory() const { return memory_; }
  bool has_memory() const { return has_memory_; }
  Owner self() const;
  // The owner under which this process's parent was attached when it forked; nobody in a first
  // image.
  Owner inherited_owner() const { return inherited_owner_; }
  // This thread's actor. Requires: attached.
  Actor& actor() { return *actor_if_any(); }
  // The same, attaching first if need be; null when there is no node.
  Actor* actor_if_any() {
    ThreadState& state = thread_state;
    if (__builtin_expect(state.epoch == process_page.epoch.load(std::memory_order_relaxed), 1)) {
      return &state.actor;
    }
    return enter_thread();
  }
  // The same, null when the thread has not got its actor yet: for the hit path, which has another
  // way to go.
  static Actor* actor_at_hand() {
    ThreadState& state = thread_state;
    const bool is_current = state.epoch == process_page.epoch.load(std::memory_order_relaxed);
    return __builtin_expect(is_current, 1) ? &state.actor : nullptr;
  }
  // Called by the thread-exit hook: gives the thread's leases back.
  void leave_thread();
  // Called once in a forked child that has attached, with the owner of the parent.
  void set_child_handler(void (*handler)(Owner parent)) { child_handler_ = handler; }

  // Called when a thread gets its actor, with a non-null value to remember: leave_thread() is
  // wanted at its end.
  void set_thread_handler(void (*handler)(const void*)) { thread_handler_ = handler; }

  // Tells whether the process has fcntl() locks on an object, so that no descriptor of it may be
  // closed.
  void set_lock_probe(bool (*probe)(ObjectIndex)) { lock_probe_ = probe; }

  // Another process is about to share this one's descriptors: neither this process nor its
  // application may close the other's socket.
  void share_descriptors() { shares_descriptors_ = true; }

  bool hand_over(ObjectIndex object, const Backing& backing) override;
  // True once hand_over() had to send a descriptor itself and not one of a description of its own:
  // locks of that description do not end with this process's close.
  bool has_lent_descriptor() const { return has_lent_.load(std::memory_order_relaxed); }
  // Until the service has received what hand_over() sent and has closed it if it was lent; a
  // service that is stopped is not waited for longer than a second.
  void await_arrivals() const;
  void discarded(ObjectIndex object) override;
  // Asks the service to store an object that this process can only read. 0 or -errno. Without a
  // service: -EIO when it is to be durable, else 0 as soon as others have stored it.
  int request_flush(ObjectIndex object, bool durable) override;
  int request_durable(ObjectIndex object) override;
  int note_cut(ObjectIndex object, std::uint64_t size) override;
  void note_renamed(ObjectIndex object) override;
  // Has the names of a directory made durable; `in_store`: in the store, whatever the log could
  // say. 0 or -errno; none when the kernel has to do it, and no log says otherwise.
  // Requires: attached.
  std::optional<int> request_names_durable(int directory, bool in_store) const;
  // Has the service store all that is dirty now of a file system (st_dev; 0: of all). False when
  // there is no service; else `*error` is 0 or -errno.
  bool request_sync(std::uint64_t device, int* error) const;
  int meet_unserved(ObjectIndex object) override;
  // The file behind `fd` is stored and worked on through the kernel for as long as this process,
  // its children and what they start may have it open. 0, or -errno: then the file must not be
  // used. Also of a process that is not attached.
  int keep_through(int fd, protocol::UnservedReason why);
  // The same for a process that is not attached, as it stands to its node: 0 when the file may be
  // used through the kernel, -EIO when it must not be, because nobody can say what of it is stored.
  int use_unserved(int fd);
  // A placeholder's file, for whose open description `fd` works: the offset of the description, as
  // far as it is live, is that of `fd` afterwards. Returns the description's O_APPEND, or -EIO.
  int take_unserved(int fd, DescriptionIndex description, std::uint32_t generation);
  // For a process that is not attached. Returns when everything dirty is stored.
  void store_everything_unserved(const char* command);
  const char* socket_path() const { return socket_path_; }
  // Answers a waiter for a lock or block of another process.
  bool is_gone(Owner owner) const override;
  void notify(const protocol::ObjectMessage& message);
  // False when it was not sent: the service has no time for it now.
  bool notify(const protocol::ArrayReadMessage& message);
  bool notify(const protocol::ArrayNewsMessage& message);
  bool notify(const protocol::PackedReadMessage& message);
  void notify_inherited();
  void notify_foreign(const char* command, const char* reason);
  // The private descriptors of the session (socket, segments, pools): never the application's to
  // close or see.
  bool owns_descriptor(int fd) const;
  // No private descriptor of the session is above this.
  int highest_descriptor() const;
  // Moves a private descriptor away because the application wants its number. True when `fd` was
  // one.
  bool relocate_descriptor(int fd);

  // For tests: works on memory of the test's own, without a service.
  void install_for_test(NodeMemory memory, Owner self, bool takes_descriptors);

 private:
  Actor* enter_thread();
  // 0 or -errno; `*why` when the node lives and this process cannot be attached.
  int connect_and_attach(protocol::UnservedReason* why);
  int greet(int socket, protocol::UnservedReason* why);
  SlotClaim claim_slot(int socket, std::optional<NoticedMemory>* found) const;
  void keep_memory(NodeMemory memory, const std::array<int, kTiersMax>& tiers, std::uint64_t inode);
  Standing standing_after(int error, protocol::UnservedReason why);
  Standing standing_after_contact(int error) const;
  bool ask(const protocol::Question& question, int* error) const;
  int ask_about(const protocol::Question& question) const;
  int tell_unserved(const char* command, protocol::UnservedReason why);
  int keep_unserved(const protocol::UnservedMessage& message, int fd);
  // kNone when the memory is mapped.
  protocol::UnservedReason adopt_memory(const protocol::Welcome& welcome, const int* descriptors,
                                        unsigned count);
  void publish(Owner self);

  char socket_path_[sizeof(sockaddr_un::sun_path)] = {};
  std::uint32_t run_ = 0;
  uid_t user_ = 0;
  NodeMemory memory_;
  bool has_memory_ = false;
  bool is_test_ = false;
  bool test_takes_descriptors_ = false;
  LedgerConnection ledger_;
  int socket_ = -1;
  int shared_socket_ = -1;  // of the process that this one has its descriptors in common with
  bool shares_descriptors_ = false;
  std::uint64_t socket_inode_ = 0;
  std::atomic<bool> has_lent_{false};
  std::uint64_t memory_inode_ =
      0;  // of the control segment: tells whether a child meets the same node
  int tier_fds_[kTiersMax] = {-1, -1, -1, -1, -1, -1, -1, -1};
  std::uint32_t last_epoch_ = 0;
  Owner last_owner_;
  Owner greeted_as_;
  Owner inherited_owner_;
  protocol::UnservedReason unserved_why_{};
  void (*child_handler_)(Owner) = nullptr;
  bool (*lock_probe_)(ObjectIndex) = nullptr;
  void (*thread_handler_)(const void*) = nullptr;
};

// Keeps the session from being destroyed: libc flushes open streams after the destructors of static
// objects have run.
union SessionPlace {
  constexpr SessionPlace() : session() {}
  ~SessionPlace() {}  // NOLINT(modernize-use-equals-default)
  Session session;
};
extern constinit SessionPlace session_place;

inline Session& Session::instance() { return session_place.session; }

}  // namespace cairn
