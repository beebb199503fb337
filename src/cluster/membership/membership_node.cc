// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/membership_node.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::cluster {

MembershipNode::MembershipNode(Transport& transport, RaftStorage* storage,
                               const MembershipOptions& options)
    : member_(transport, options.terms, options.hosts, options.seed) {
  member_.set_partitions(options.partitions);
  const std::vector<NodeId> coordinators = coordinators_of(options.hosts);
  const bool is_coordinator =
      std::ranges::find(coordinators, transport.self()) != coordinators.end();
  CAIRN_CHECK(is_coordinator == (storage != nullptr));
  if (!is_coordinator) return;
  coordinator_ = std::make_unique<Coordinator>(transport, options.terms, options.partitions);
  const RaftOptions raft{.voters = coordinators,
                         .seed = options.seed ^ raw(transport.self()),
                         .election_timeout_ms = options.terms.election_timeout_ms,
                         .heartbeat_ms = options.terms.heartbeat_ms};
  consensus_ = std::make_unique<RaftConsensus>(transport, *storage, *coordinator_, raft);
  coordinator_->set_consensus(consensus_.get());
}

MembershipNode::~MembershipNode() = default;

Status MembershipNode::start(std::int64_t now_ns) {
  if (consensus_ == nullptr) return Status::ok();
  coordinator_->note_time(now_ns);
  CAIRN_RETURN_IF_ERROR(consensus_->start(now_ns));
  coordinator_->note_time(now_ns);
  return Status::ok();
}

void MembershipNode::tick(std::int64_t now_ns) {
  if (coordinator_ != nullptr) {
    coordinator_->note_time(now_ns);
    consensus_->tick(now_ns);
    coordinator_->tick(now_ns);
  }
  member_.tick(now_ns);
}

bool MembershipNode::on_message(const Message& message, std::int64_t now_ns) {
  const std::uint16_t room = room_of(message.type);
  if (room == kForMember) {
    member_.on_message(message, now_ns);
    return true;
  }
  if (room != kForConsensus && room != kForCoordinator) return false;
  // Others may take this node for a coordinator; their roster differs.
  if (coordinator_ == nullptr) return true;
  coordinator_->note_time(now_ns);
  if (room == kForConsensus) consensus_->on_message(message, now_ns);
  if (room == kForCoordinator) coordinator_->on_message(message, now_ns);
  return true;
}

void MembershipNode::progress(std::int64_t now_ns) {
  if (coordinator_ == nullptr) return;
  coordinator_->note_time(now_ns);
  do {
    coordinator_->progress(now_ns);
  } while (consensus_->progress());
  coordinator_->note_time(now_ns);
}

}  // namespace cairn::cluster
