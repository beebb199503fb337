// SPDX-License-Identifier: Apache-2.0
// A coordinator: it admits, renews and declares dead, by commands that the coordinators agree on.
//
// Only the leader answers, and only when the command has been applied. So an answer proves that a
// majority had this leader at that time: one that was deposed while it slept grants nothing.
//
//   asked for          the leader                                   the member hears
//   kRenew, to join    proposes kJoin                               granted, and the view with it
//   kRenew             proposes kRenew, many in one command         granted, or that it is none
//   kLeave             proposes kLeave                              that it is no member
//   anything           nothing, where it does not lead              elsewhere, and where
//
// A member whose last renewal was applied a lease ago is declared dead (lease_terms.h). So is one
// that is heard and hears nothing (a one-way cut): it does not serve, and would keep its partitions
// from everybody. Each request names the last reply that the member has heard; where that stands
// still for half a lease, the renewals count no more until it moves again.
//
// A new view goes to all its members, and to those that it has lost, at once.
//
// Thread safety: none. Ownership: borrows the transport and the consensus. The consensus ends
// first.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cluster/membership/consensus.h"
#include "cluster/membership/lease_terms.h"
#include "cluster/membership/membership_messages.h"
#include "cluster/membership/membership_state.h"

namespace cairn::cluster {

class Coordinator final : public StateMachine {
 public:
  Coordinator(Transport& transport, const LeaseTerms& terms, std::uint32_t partitions);

  // Called once, before anything else.
  void set_consensus(Consensus* consensus) { consensus_ = consensus; }
  void on_message(const Message& message, std::int64_t now_ns);
  // Behind the consensus's own tick.
  void tick(std::int64_t now_ns);
  // Proposes what is urgent. Behind the consensus's own progress().
  void progress(std::int64_t now_ns);
  // Before the consensus is called: commands are applied at this time.
  void note_time(std::int64_t now_ns);

  const MembershipState& state() const { return state_; }
  std::uint64_t deaths() const { return deaths_; }  // that this node has declared as leader

  // StateMachine
  void apply(std::span<const std::byte> command) override;
  std::vector<std::byte> snapshot() const override { return state_.snapshot(); }
  Status restore(std::span<const std::byte> snapshot) override;

 private:
  struct Asker {
    NodeId node{};
    RenewRequest request;
  };
  struct Waiting {
    Command command;
    Asker asker;
  };

  struct Hearing {
    std::uint64_t nonce = 0;
    std::uint64_t heard = 0;
    std::int64_t since_ns = 0;
  };

  bool is_deaf(const Asker& asker);
  void propose(std::int64_t now_ns);
  std::vector<Command> removals(std::int64_t now_ns) const;
  void end_proposal(bool is_applied);
  void answer(const Asker& asker);
  void send_answer(const Asker& asker, Verdict verdict);
  void tell_elsewhere(const Asker& asker);
  void publish(const View& before);
  void send(NodeId node, MessageType type, const Bytes& header, const Bytes& payload);

  Transport& transport_;
  const LeaseTerms terms_;
  Consensus* consensus_ = nullptr;
  MembershipState state_;
  std::int64_t now_ns_ = 0;

  // When each member's last renewal was applied here, by this node's clock.
  std::map<NodeId, std::int64_t> renewed_at_;
  // Nobody is declared dead before the grace that begins here: an election, or the end of a sleep.
  std::int64_t grace_from_ns_ = 0;
  std::uint64_t led_term_ = 0;

  std::map<NodeId, Hearing> hearing_;
  std::map<NodeId, Waiting> waiting_;  // the last request of each node
  bool is_urgent_ = false;
  bool is_proposing_ = false;
  std::vector<Asker> proposed_;  // they wait for the command that is being agreed on
  std::uint64_t deaths_ = 0;
};

}  // namespace cairn::cluster
