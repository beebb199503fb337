// SPDX-License-Identifier: Apache-2.0
// The state that the coordinators agree on: a view, and the renewals since. Every coordinator
// applies the same commands in the same order, and so has the same state after each.
//
//   command   from             takes effect if                        and then
//   kJoin     a new process    its ticket is the node's next one      epoch + 1: a life, which
//                                                                     ends the one before
//   kRenew    a member         that life is in the view               its lease begins anew
//   kRemove   the leader       that life is in the view and has not   epoch + 1: it is no member
//                              renewed since the leader looked
//   kLeave    a member         that life is in the view               epoch + 1: it is no member
//
// The commands of one entry of the log make one view. An incarnation is the epoch that began it.
//
// A view is *settled* when each of its members has said that it knows it, or a later one. Before
// that, a member may still serve by the view before it, and a node that gets partitions by the new
// view waits (member.h). Settled epochs never go down.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "cluster/membership/view.h"

namespace cairn::cluster {

enum class CommandKind : std::uint8_t { kJoin = 1, kRenew, kRemove, kLeave };

struct Command {
  CommandKind kind{};
  NodeLife life;  // kJoin: without an incarnation
  // kJoin: the nonce, by which the view names the process. kRenew: the epoch that the member knows.
  // kRemove: the number of the entry by which the member renewed last, as far as the leader knew.
  std::uint64_t number = 0;
  std::uint64_t ticket = 0;  // kJoin alone

  friend bool operator==(const Command&, const Command&) = default;
};

Bytes encode_commands(std::span<const Command> commands);
// Errors: kInvalid.
Result<std::vector<Command>> decode_commands(std::span<const std::byte> bytes);

class MembershipState {
 public:
  // `partitions`: of the table whose checksum is in the views.
  explicit MembershipState(std::uint32_t partitions) : partitions_(partitions) {}

  struct Effect {
    bool has_changed_view = false;
    std::vector<NodeId> renewed;  // members that joined or renewed
  };
  Effect apply(std::span<const Command> commands);

  const View& view() const { return view_; }
  Epoch settled() const { return settled_; }
  // The entry that renewed a member last. Requires: a member.
  std::uint64_t renewed_by(NodeId node) const;
  // The ticket with which the node's next process can join: how often one has. So a join that comes
  // late cannot take the place of a process that came after it.
  std::uint64_t ticket_for(NodeId node) const;

  Bytes snapshot() const;
  // Errors: kInvalid; the state is as before then.
  Status restore(std::span<const std::byte> bytes);

 private:
  struct Record {
    std::uint64_t renewed_by = 0;
    Epoch knows{};
    std::uint64_t joins = 0;
  };

  bool join(const Command& command);
  bool renew(const Command& command);
  bool remove(const Command& command);
  void begin_view();
  void settle();

  const std::uint32_t partitions_;
  View view_;
  Epoch settled_{};
  std::uint64_t entries_ = 0;
  std::map<NodeId, Record> records_;  // of all nodes that ever joined
};

}  // namespace cairn::cluster
