// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/member.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::cluster {

Member::Member(Transport& transport, const LeaseTerms& terms, std::uint32_t hosts,
               std::uint64_t seed)
    : transport_(transport),
      terms_(terms),
      coordinators_(coordinators_of(hosts)),
      random_(seed),
      nonce_(random_.next()) {
  CAIRN_CHECK(hosts >= 1 && hosts <= kNodesMax);
  CAIRN_CHECK(raw(transport.self()) >= 1 && raw(transport.self()) <= hosts);
}

void Member::tick(std::int64_t now_ns) {
  if (state_ == MemberState::kLeft || now_ns < next_request_ns_) return;
  if (!is_answered_) try_next_coordinator();
  is_redirected_ = false;
  send_request(now_ns);
}

void Member::send_request(std::int64_t now_ns) {
  const RenewRequest request{++request_, nonce_, incarnation_, view_.epoch, heard_, ticket_};
  sent_.push_back({request_, now_ns});
  if (sent_.size() > kSentKept) sent_.pop_front();
  is_answered_ = false;
  next_request_ns_ = now_ns + terms_.renew_every_ns;
  // A failure shows as silence, behind which comes the next coordinator.
  (void)transport_.send(coordinators_[target_],
                        state_ == MemberState::kLeaving ? kLeaveMessage : kRenewMessage,
                        encode(request), {}, now_ns + kMembershipDeadlineNs);
}

void Member::try_next_coordinator() { target_ = (target_ + 1) % coordinators_.size(); }

void Member::on_message(const Message& message, std::int64_t now_ns) {
  const bool is_of_coordinator =
      std::ranges::find(coordinators_, message.from.node) != coordinators_.end();
  if (!is_of_coordinator || state_ == MemberState::kLeft) return;
  if (message.type == kAnswerMessage) on_answer(message, now_ns);
  if (message.type == kElsewhereMessage) on_elsewhere(message, now_ns);
  if (message.type == kViewMessage) on_view(message, now_ns);
}

void Member::on_peer_down(NodeId peer, std::int64_t now_ns) {
  if (coordinators_[target_] != peer || is_answered_) return;
  // A hint: it saves the rest of the time until the next request.
  try_next_coordinator();
  next_request_ns_ = std::min(next_request_ns_, now_ns + terms_.tick_ns);
  is_answered_ = true;
}

void Member::on_answer(const Message& message, std::int64_t now_ns) {
  const std::optional<RenewAnswer> answer = decode_answer(message.header);
  if (!answer || answer->nonce != nonce_) return;
  const auto sent = std::ranges::find(sent_, answer->request, &Sent::request);
  if (sent == sent_.end()) return;
  const std::int64_t sent_at_ns = sent->at_ns;
  heard_ = std::max(heard_, answer->request);
  if (answer->request == request_) is_answered_ = true;
  if (answer->verdict == Verdict::kTicket) {
    if (ticket_ != kNoTicket || state_ != MemberState::kJoining) return;
    ticket_ = answer->ticket;
    send_request(now_ns);
    return;
  }
  if (!message.payload.empty()) take_view(message.payload, now_ns);
  // The view may have said that this life is over, and another one begun.
  if (answer->nonce != nonce_ || state_ == MemberState::kLeft) return;
  if (answer->verdict == Verdict::kNoMember) {
    lose_life(now_ns);
    return;
  }
  note_settled(answer->settled);
  if (incarnation_ == Incarnation::kNone) return;
  serves_until_ns_ = std::max(serves_until_ns_, sent_at_ns + terms_.serving_ns());
}

void Member::on_elsewhere(const Message& message, std::int64_t now_ns) {
  const std::optional<ElsewhereAnswer> answer = decode_elsewhere(message.header);
  if (!answer || answer->request != request_) return;
  heard_ = std::max(heard_, answer->request);
  const auto leader = std::ranges::find(coordinators_, answer->leader);
  if (leader == coordinators_.end() || coordinators_[target_] == answer->leader) return;
  target_ = static_cast<std::size_t>(leader - coordinators_.begin());
  // Once per period: two that each take the other one for the leader must not play with us.
  if (is_redirected_) return;
  is_redirected_ = true;
  send_request(now_ns);
}

void Member::on_view(const Message& message, std::int64_t now_ns) {
  ByteReader header(message.header);
  const auto settled = header.take<Epoch>();
  if (!header.is_at_end()) return;
  take_view(message.payload, now_ns);
  note_settled(settled);
}

void Member::take_view(std::span<const std::byte> payload, std::int64_t now_ns) {
  ByteReader reader(payload);
  Result<View> view = decode_view(reader);
  if (!view || !reader.is_at_end() || view->epoch <= view_.epoch) return;
  PartitionTable table(view->nodes(), partitions_);
  if (table.checksum() != view->table_checksum) {
    ++refused_views_;
    return;
  }
  view_ = std::move(*view);
  table_ = std::move(table);
  find_self(now_ns);
  transport_.set_identity(incarnation_, view_.epoch);
  // The leader waits to hear that this node knows the view; a member must say so at once.
  if (incarnation_ != Incarnation::kNone) send_request(now_ns);
  if (observer_) observer_();
}

void Member::find_self(std::int64_t now_ns) {
  const ViewMember* self = view_.find(transport_.self());
  const bool is_in_view = self != nullptr && self->nonce == nonce_;
  if (!is_in_view) {
    if (incarnation_ != Incarnation::kNone) lose_life(now_ns);
    return;
  }
  const bool is_same_life = incarnation_ == self->life.incarnation;
  CAIRN_CHECK(is_same_life || incarnation_ == Incarnation::kNone);
  incarnation_ = self->life.incarnation;
  if (state_ == MemberState::kJoining) state_ = MemberState::kMember;
  keep_held(is_same_life);
}

void Member::keep_held(bool is_same_life) {
  CAIRN_CHECK(table_.partitions() == partitions_);
  if (!is_same_life) held_.assign(partitions_, false);
  CAIRN_CHECK(held_.size() == partitions_);
  for (std::uint32_t p = 0; p < partitions_; ++p) {
    const bool is_primary = table_.home(static_cast<PartitionId>(p)).primary == transport_.self();
    held_[p] = held_[p] && is_primary;
  }
}

void Member::note_settled(Epoch settled) {
  settled_ = std::max(settled_, settled);
  if (incarnation_ == Incarnation::kNone || settled_ < view_.epoch) return;
  for (std::uint32_t p = 0; p < partitions_; ++p) {
    held_[p] = table_.home(static_cast<PartitionId>(p)).primary == transport_.self();
  }
}

void Member::lose_life(std::int64_t now_ns) {
  serves_until_ns_ = INT64_MIN;
  incarnation_ = Incarnation::kNone;
  held_.clear();
  sent_.clear();
  if (state_ == MemberState::kLeaving) {
    state_ = MemberState::kLeft;
  } else {
    state_ = MemberState::kJoining;
    nonce_ = random_.next();
    ticket_ = kNoTicket;
    ++lives_;
    next_request_ns_ = now_ns;
  }
  transport_.set_identity(incarnation_, view_.epoch);
}

void Member::leave(std::int64_t now_ns) {
  if (state_ == MemberState::kLeft || state_ == MemberState::kLeaving) return;
  serves_until_ns_ = INT64_MIN;
  if (incarnation_ == Incarnation::kNone) {
    // A join of this process may be under way: it then dies of its lease.
    state_ = MemberState::kLeft;
    return;
  }
  state_ = MemberState::kLeaving;
  send_request(now_ns);
}

bool Member::may_serve(std::int64_t now_ns) const {
  return state_ == MemberState::kMember && now_ns < serves_until_ns_;
}

bool Member::serves(PartitionId partition, std::int64_t now_ns) const {
  CAIRN_DCHECK(raw(partition) < partitions_);
  return may_serve(now_ns) && held_[raw(partition)];
}

Standing Member::standing_of(const Message& message) {
  if (message.epoch > view_.epoch) {
    next_request_ns_ = INT64_MIN;  // at the next tick
    return Standing::kNewer;
  }
  if (!view_.has(message.from)) return Standing::kStranger;
  return message.epoch < view_.epoch ? Standing::kOlder : Standing::kCurrent;
}

}  // namespace cairn::cluster
