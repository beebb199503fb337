// SPDX-License-Identifier: Apache-2.0
// A view: which nodes are members, each in which life, and by which table they share partitions.
//
// There is one view per epoch, agreed by the coordinators. The partition table is a function of the
// members (cluster/placement_map/partition_table.h); its checksum is part of the view.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/cluster_ids.h"
#include "base/status.h"
#include "cluster/transport/byte_codec.h"

namespace cairn::cluster {

struct ViewMember {
  NodeLife life;
  // What the joining process has drawn to know itself again, and to be known.
  std::uint64_t nonce = 0;

  friend bool operator==(const ViewMember&, const ViewMember&) = default;
};

struct View {
  Epoch epoch = Epoch::kNone;
  std::vector<ViewMember> members;  // in ascending order of nodes
  std::uint64_t table_checksum = 0;

  // Null where the node is no member.
  const ViewMember* find(NodeId node) const;
  bool has(NodeLife life) const;
  std::vector<NodeId> nodes() const;

  friend bool operator==(const View&, const View&) = default;
};

void encode_view(ByteWriter& writer, const View& view);
// Errors: kInvalid, also for members that are out of order or no nodes.
Result<View> decode_view(ByteReader& reader);

}  // namespace cairn::cluster
