// SPDX-License-Identifier: Apache-2.0
// Membership of one node: its member, and its coordinator where it is one of the first hosts.
//
// Its driver calls tick() every LeaseTerms::tick_ns, gives it the messages of its rooms, and soon
// after both calls progress(): writes of the coordinators' log wait for that.
//
// Thread safety: none: one thread. Ownership: borrows the transport and the storage.
#pragma once

#include <cstdint>
#include <memory>

#include "cluster/membership/coordinator.h"
#include "cluster/membership/member.h"
#include "cluster/membership/raft_consensus.h"

namespace cairn::cluster {

struct MembershipOptions {
  std::uint32_t hosts = 1;  // of the roster
  LeaseTerms terms;
  std::uint32_t partitions = kPartitions;
  std::uint64_t seed = 0;  // as Member's
};

class MembershipNode {
 public:
  // `storage`: of a coordinator; null with other nodes.
  MembershipNode(Transport& transport, RaftStorage* storage, const MembershipOptions& options);
  ~MembershipNode();
  MembershipNode(const MembershipNode&) = delete;
  MembershipNode& operator=(const MembershipNode&) = delete;

  Status start(std::int64_t now_ns);
  void tick(std::int64_t now_ns);
  // Returns: whether the message was for membership.
  bool on_message(const Message& message, std::int64_t now_ns);
  void progress(std::int64_t now_ns);

  Member& member() { return member_; }
  const Member& member() const { return member_; }
  // Null with a node that is none.
  const Coordinator* coordinator() const { return coordinator_.get(); }
  const Consensus* consensus() const { return consensus_.get(); }

 private:
  Member member_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<RaftConsensus> consensus_;  // ends before the coordinator
};

}  // namespace cairn::cluster
