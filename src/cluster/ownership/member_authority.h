// SPDX-License-Identifier: Apache-2.0
// The authority of a member (cluster/membership/member.h).
//
// Thread safety: the member's. Ownership: borrows the member.
#pragma once

#include "cluster/membership/member.h"
#include "cluster/ownership/authority.h"
#include "cluster/placement_map/partition_table.h"

namespace cairn::cluster {

class MemberAuthority final : public Authority {
 public:
  MemberAuthority(const Member& member, NodeId self) : member_(member), self_(self) {}
  NodeLife self() const override { return {self_, member_.incarnation()}; }
  Epoch epoch() const override { return member_.view().epoch; }
  bool has(NodeLife life) const override { return member_.view().has(life); }
  NodeLife home_of(const LastingKey& file) const override {
    const NodeId primary = member_.table().home_of(file).primary;
    const ViewMember* member = member_.view().find(primary);
    return member == nullptr ? NodeLife{} : member->life;
  }
  bool may_serve(std::int64_t now_ns) const override { return member_.may_serve(now_ns); }
  bool serves(const LastingKey& file, std::int64_t now_ns) const override {
    const std::uint32_t partitions = member_.table().partitions();
    if (partitions == 0) return false;
    const std::uint32_t partition = raw(partition_of(hash_of(file))) % partitions;
    return member_.serves(static_cast<PartitionId>(partition), now_ns);
  }

 private:
  const Member& member_;
  const NodeId self_;
};

}  // namespace cairn::cluster
