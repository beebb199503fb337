// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/view.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::cluster {

namespace {

constexpr std::size_t kMemberBytes = 4 + 8 + 8;

}  // namespace

const ViewMember* View::find(NodeId node) const {
  const auto found = std::ranges::lower_bound(
      members, node, {}, [](const ViewMember& member) { return member.life.node; });
  return found != members.end() && found->life.node == node ? &*found : nullptr;
}

bool View::has(NodeLife life) const {
  const ViewMember* member = find(life.node);
  return member != nullptr && member->life == life;
}

std::vector<NodeId> View::nodes() const {
  std::vector<NodeId> nodes;
  nodes.reserve(members.size());
  for (const ViewMember& member : members) nodes.push_back(member.life.node);
  CAIRN_DCHECK(std::ranges::is_sorted(nodes));
  return nodes;
}

void encode_view(ByteWriter& writer, const View& view) {
  CAIRN_CHECK(view.members.size() <= kNodesMax);
  writer.put(view.epoch);
  writer.put(view.table_checksum);
  writer.put(static_cast<std::uint32_t>(view.members.size()));
  for (const ViewMember& member : view.members) {
    writer.put(member.life.node);
    writer.put(member.life.incarnation);
    writer.put(member.nonce);
  }
}

Result<View> decode_view(ByteReader& reader) {
  View view;
  view.epoch = reader.take<Epoch>();
  view.table_checksum = reader.take<std::uint64_t>();
  const std::uint32_t count = reader.take_count(kMemberBytes);
  std::uint32_t before = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    ViewMember member;
    member.life.node = reader.take<NodeId>();
    member.life.incarnation = reader.take<Incarnation>();
    member.nonce = reader.take<std::uint64_t>();
    if (raw(member.life.node) <= before || raw(member.life.node) > kNodesMax ||
        raw(member.life.incarnation) > raw(view.epoch)) {
      return Status(StatusCode::kInvalid, "a view with members out of order");
    }
    before = raw(member.life.node);
    view.members.push_back(member);
  }
  if (!reader.is_whole()) return Status(StatusCode::kInvalid, "a view that is cut short");
  return view;
}

}  // namespace cairn::cluster
