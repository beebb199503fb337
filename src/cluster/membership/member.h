// SPDX-License-Identifier: Apache-2.0
// A member: it keeps its lease, knows the view, and says what this node may serve.
//
//   state      is left when                                to
//   joining    a view has this process's nonce             member
//   member     a view is without this life, or the         joining, with a new nonce: nothing of
//              leader says so                              the old life is valid any more
//              leave()                                     leaving
//   leaving    the leader says that it is no member        left
//
// serves() is the one question that guards data: a caller that acknowledges a write or answers a
// read puts it last of all, with the time then. It is true where all of this holds:
//   1. This life is in the view that the node knows.
//   2. The last granted renewal was sent less than half a lease ago.
//   3. The partition's primary is this node in the view, and either the view is settled or the node
//      has been primary in every view that it has known since one that was settled. (A node that a
//      view makes primary waits until the one before it cannot serve any more.)
//
// Thread safety: none. Ownership: borrows the transport. Units: this node's monotonic clock.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "base/random_source.h"
#include "cluster/membership/lease_terms.h"
#include "cluster/membership/membership_messages.h"
#include "cluster/placement_map/partition_table.h"

namespace cairn::cluster {

enum class MemberState : std::uint8_t { kJoining, kMember, kLeaving, kLeft };

// What a message of another room is to this node, by the epoch and the life in it.
enum class Standing : std::uint8_t {
  kCurrent,   // of a member, in this node's view
  kOlder,     // of a member that does not know the view yet: refuse it, the sender asks again
  kNewer,     // this node does not know the sender's view yet: refuse it; the node asks for it
  kStranger,  // of a life that is no member: refuse it, it will learn so from the coordinators
};

class Member {
 public:
  // `seed` must differ from that of every other process that ever was this node.
  Member(Transport& transport, const LeaseTerms& terms, std::uint32_t hosts, std::uint64_t seed);
  // Another number of partitions, for simulations. Before anything else.
  void set_partitions(std::uint32_t partitions) { partitions_ = partitions; }
  // Called after each change of view.
  void set_observer(std::function<void()> observer) { observer_ = std::move(observer); }

  void tick(std::int64_t now_ns);
  void on_message(const Message& message, std::int64_t now_ns);
  void on_peer_down(NodeId peer, std::int64_t now_ns);
  // Stops serving at once, and tells the coordinators until one answers.
  void leave(std::int64_t now_ns);

  MemberState state() const { return state_; }
  Incarnation incarnation() const { return incarnation_; }
  const View& view() const { return view_; }
  const PartitionTable& table() const { return table_; }
  Epoch settled() const { return settled_; }
  // Whether the lease holds: condition 1 and 2.
  bool may_serve(std::int64_t now_ns) const;
  bool serves(PartitionId partition, std::int64_t now_ns) const;
  Standing standing_of(const Message& message);
  // Views that were refused because their table has another checksum than this node computes: it
  // has other software.
  std::uint64_t refused_views() const { return refused_views_; }
  std::uint64_t lives() const { return lives_; }

 private:
  struct Sent {
    std::uint64_t request;
    std::int64_t at_ns;
  };
  static constexpr std::size_t kSentKept = 16;

  void send_request(std::int64_t now_ns);
  void try_next_coordinator();
  void on_answer(const Message& message, std::int64_t now_ns);
  void on_elsewhere(const Message& message, std::int64_t now_ns);
  void on_view(const Message& message, std::int64_t now_ns);
  void take_view(std::span<const std::byte> payload, std::int64_t now_ns);
  void find_self(std::int64_t now_ns);
  void note_settled(Epoch settled);
  void lose_life(std::int64_t now_ns);
  void keep_held(bool is_same_life);

  Transport& transport_;
  const LeaseTerms terms_;
  const std::vector<NodeId> coordinators_;
  std::uint32_t partitions_ = kPartitions;
  std::function<void()> observer_;
  RandomSource random_;

  MemberState state_ = MemberState::kJoining;
  std::uint64_t nonce_;
  std::uint64_t ticket_ = kNoTicket;
  std::uint64_t lives_ = 1;
  Incarnation incarnation_ = Incarnation::kNone;
  std::int64_t serves_until_ns_ = INT64_MIN;
  View view_;
  PartitionTable table_;
  Epoch settled_{};
  std::vector<bool> held_;  // partitions by condition 3

  std::size_t target_ = 0;  // of coordinators_
  std::uint64_t request_ = 0;
  std::uint64_t heard_ = 0;  // the last request that was replied to
  bool is_answered_ = true;
  bool is_redirected_ = false;
  std::int64_t next_request_ns_ = INT64_MIN;
  std::deque<Sent> sent_;
  std::uint64_t refused_views_ = 0;
};

}  // namespace cairn::cluster
