// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/membership_state.h"

#include <algorithm>

#include "base/check.h"
#include "cluster/placement_map/partition_table.h"

namespace cairn::cluster {

namespace {

constexpr std::size_t kCommandBytes = 1 + 4 + 8 + 8;

Status bad_state() { return {StatusCode::kInvalid, "a snapshot of membership is damaged"}; }

}  // namespace

Bytes encode_commands(std::span<const Command> commands) {
  ByteWriter writer;
  writer.put(static_cast<std::uint32_t>(commands.size()));
  for (const Command& command : commands) {
    writer.put(command.kind);
    writer.put(command.life.node);
    writer.put(command.life.incarnation);
    writer.put(command.number);
    if (command.kind == CommandKind::kJoin) writer.put(command.ticket);
  }
  CAIRN_DCHECK(writer.bytes().size() >= 4 + commands.size() * kCommandBytes);
  return writer.take();
}

Result<std::vector<Command>> decode_commands(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const std::uint32_t count = reader.take_count(kCommandBytes);
  std::vector<Command> commands;
  for (std::uint32_t i = 0; i < count; ++i) {
    Command command;
    command.kind = reader.take<CommandKind>();
    command.life.node = reader.take<NodeId>();
    command.life.incarnation = reader.take<Incarnation>();
    command.number = reader.take<std::uint64_t>();
    if (command.kind == CommandKind::kJoin) command.ticket = reader.take<std::uint64_t>();
    const bool is_known = command.kind >= CommandKind::kJoin && command.kind <= CommandKind::kLeave;
    if (!is_known || raw(command.life.node) < 1 || raw(command.life.node) > kNodesMax) {
      return Status(StatusCode::kInvalid, "a membership command of no known kind or node");
    }
    commands.push_back(command);
  }
  if (!reader.is_at_end()) return Status(StatusCode::kInvalid, "membership commands are cut short");
  return commands;
}

MembershipState::Effect MembershipState::apply(std::span<const Command> commands) {
  ++entries_;
  Effect effect;
  for (const Command& command : commands) {
    bool has_changed = false;
    if (command.kind == CommandKind::kJoin) {
      has_changed = join(command);
      const ViewMember* member = view_.find(command.life.node);
      if (has_changed || (member != nullptr && member->nonce == command.number)) {
        records_[command.life.node].renewed_by = entries_;
        effect.renewed.push_back(command.life.node);
      }
    } else if (command.kind == CommandKind::kRenew) {
      if (renew(command)) effect.renewed.push_back(command.life.node);
    } else {
      has_changed = remove(command);
    }
    effect.has_changed_view |= has_changed;
  }
  if (effect.has_changed_view) begin_view();
  settle();
  return effect;
}

bool MembershipState::join(const Command& command) {
  Record& record = records_[command.life.node];
  if (record.joins != command.ticket) return false;
  ++record.joins;
  // It knows no view yet: the one that admits it is not settled before it has said so.
  record.knows = view_.epoch;
  const ViewMember member{{command.life.node, Incarnation{raw(next(view_.epoch))}}, command.number};
  const auto place =
      std::ranges::lower_bound(view_.members, command.life.node, {},
                               [](const ViewMember& other) { return other.life.node; });
  if (place != view_.members.end() && place->life.node == command.life.node) {
    CAIRN_CHECK(place->life.incarnation < member.life.incarnation);
    *place = member;
  } else {
    view_.members.insert(place, member);
  }
  return true;
}

bool MembershipState::renew(const Command& command) {
  if (!view_.has(command.life)) return false;
  Record& record = records_.at(command.life.node);
  record.renewed_by = entries_;
  // Renewals overtake each other. One of a view to come cannot be.
  record.knows = std::max(record.knows, std::min(Epoch{command.number}, view_.epoch));
  return true;
}

bool MembershipState::remove(const Command& command) {
  if (!view_.has(command.life)) return false;
  const bool is_asked_by_leader = command.kind == CommandKind::kRemove;
  if (is_asked_by_leader && renewed_by(command.life.node) != command.number) return false;
  const std::size_t erased = std::erase_if(
      view_.members, [&](const ViewMember& member) { return member.life == command.life; });
  CAIRN_CHECK(erased == 1);
  return true;
}

void MembershipState::begin_view() {
  view_.epoch = next(view_.epoch);
  view_.table_checksum = PartitionTable(view_.nodes(), partitions_).checksum();
}

void MembershipState::settle() {
  Epoch known_to_all = view_.epoch;
  for (const ViewMember& member : view_.members) {
    known_to_all = std::min(known_to_all, records_.at(member.life.node).knows);
  }
  settled_ = std::max(settled_, known_to_all);
  CAIRN_CHECK(settled_ <= view_.epoch);
}

std::uint64_t MembershipState::renewed_by(NodeId node) const {
  CAIRN_CHECK(view_.find(node) != nullptr);
  return records_.at(node).renewed_by;
}

std::uint64_t MembershipState::ticket_for(NodeId node) const {
  const auto found = records_.find(node);
  return found == records_.end() ? 0 : found->second.joins;
}

Bytes MembershipState::snapshot() const {
  ByteWriter writer;
  encode_view(writer, view_);
  writer.put(settled_);
  writer.put(entries_);
  writer.put(static_cast<std::uint32_t>(records_.size()));
  for (const auto& [node, record] : records_) {
    writer.put(node);
    writer.put(record.renewed_by);
    writer.put(record.knows);
    writer.put(record.joins);
  }
  return writer.take();
}

Status MembershipState::restore(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  Result<View> view = decode_view(reader);
  if (!view) return view.status();
  const auto settled = reader.take<Epoch>();
  const auto entries = reader.take<std::uint64_t>();
  const std::uint32_t count = reader.take_count(4 + 8 + 8 + 8);
  std::map<NodeId, Record> records;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto node = reader.take<NodeId>();
    Record record;
    record.renewed_by = reader.take<std::uint64_t>();
    record.knows = reader.take<Epoch>();
    record.joins = reader.take<std::uint64_t>();
    records.emplace(node, record);
  }
  if (!reader.is_at_end() || settled > view->epoch) return bad_state();
  for (const ViewMember& member : view->members) {
    if (!records.contains(member.life.node)) return bad_state();
  }
  view_ = std::move(*view);
  settled_ = settled;
  entries_ = entries;
  records_ = std::move(records);
  return Status::ok();
}

}  // namespace cairn::cluster
