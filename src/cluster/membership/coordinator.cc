// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/coordinator.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cairn::cluster {

Coordinator::Coordinator(Transport& transport, const LeaseTerms& terms, std::uint32_t partitions)
    : transport_(transport), terms_(terms), state_(partitions) {
  CAIRN_CHECK(terms.grace_ns <= terms.lease_ns);
  CAIRN_CHECK(terms.renew_every_ns * 2 <= terms.serving_ns());
}

void Coordinator::note_time(std::int64_t now_ns) {
  CAIRN_CHECK(now_ns >= now_ns_);
  // A leader that has slept has heard nobody: that is no fault of the members.
  if (now_ns - now_ns_ > terms_.sleep_ns) grace_from_ns_ = now_ns;
  now_ns_ = now_ns;
  if (consensus_->is_leader() && led_term_ != consensus_->term()) {
    CAIRN_CHECK(consensus_->term() > led_term_);
    led_term_ = consensus_->term();
    grace_from_ns_ = now_ns;
  }
}

void Coordinator::on_message(const Message& message, std::int64_t now_ns) {
  note_time(now_ns);
  if (message.type != kRenewMessage && message.type != kLeaveMessage) return;
  const std::optional<RenewRequest> request = decode_renew(message.header);
  const NodeId node = message.from.node;
  if (!request || raw(node) < 1 || raw(node) > kNodesMax) return;
  const Asker asker{node, *request};
  if (!consensus_->is_leader() || is_deaf(asker)) {
    tell_elsewhere(asker);
    return;
  }
  Command command{CommandKind::kRenew, {node, request->incarnation}, raw(request->epoch)};
  if (message.type == kLeaveMessage) {
    command = {CommandKind::kLeave, {node, request->incarnation}, 0};
  } else if (request->incarnation == Incarnation::kNone) {
    // A ticket is a hint that the command checks: nobody has to agree on it.
    if (request->ticket == kNoTicket) return send_answer(asker, Verdict::kTicket);
    command = {CommandKind::kJoin, {node, Incarnation::kNone}, request->nonce, request->ticket};
  }
  // Whatever changes or settles a view cannot wait for the tick that gathers renewals.
  const bool is_news = command.kind != CommandKind::kRenew || request->epoch > state_.settled();
  is_urgent_ |= is_news;
  waiting_.insert_or_assign(node, Waiting{command, asker});
}

bool Coordinator::is_deaf(const Asker& asker) {
  Hearing& hearing = hearing_[asker.node];
  const RenewRequest& request = asker.request;
  if (hearing.nonce != request.nonce || request.heard > hearing.heard) {
    hearing = {request.nonce, request.heard, now_ns_};
  }
  // A leader that has slept has not replied either.
  return now_ns_ - std::max(hearing.since_ns, grace_from_ns_) > terms_.serving_ns();
}

void Coordinator::tick(std::int64_t now_ns) {
  note_time(now_ns);
  propose(now_ns);
}

void Coordinator::progress(std::int64_t now_ns) {
  note_time(now_ns);
  if (is_urgent_) propose(now_ns);
}

void Coordinator::propose(std::int64_t now_ns) {
  if (is_proposing_) return;
  is_urgent_ = false;
  if (!consensus_->is_leader()) {
    for (const auto& [node, waiting] : waiting_) tell_elsewhere(waiting.asker);
    waiting_.clear();
    return;
  }
  CAIRN_CHECK(proposed_.empty());
  std::vector<Command> commands;
  for (const auto& [node, waiting] : waiting_) {
    commands.push_back(waiting.command);
    proposed_.push_back(waiting.asker);
  }
  waiting_.clear();
  // Behind the renewals: one of them may be of a member that is about to be declared dead.
  for (const Command& removal : removals(now_ns)) commands.push_back(removal);
  if (commands.empty()) return;
  const Status accepted = consensus_->propose(
      encode_commands(commands), [this](bool is_applied) { end_proposal(is_applied); });
  is_proposing_ = accepted.is_ok();
  if (!is_proposing_) proposed_.clear();
}

std::vector<Command> Coordinator::removals(std::int64_t now_ns) const {
  std::vector<Command> found;
  if (now_ns < grace_from_ns_ + terms_.grace_ns) return found;
  for (const ViewMember& member : state_.view().members) {
    const NodeId node = member.life.node;
    if (now_ns <= renewed_at_.at(node) + terms_.lease_ns) continue;
    found.push_back({CommandKind::kRemove, member.life, state_.renewed_by(node)});
  }
  return found;
}

void Coordinator::end_proposal(bool is_applied) {
  const std::vector<Asker> askers = std::exchange(proposed_, {});
  is_proposing_ = false;
  // Those of a command that has failed ask again: nothing is known of it.
  if (!is_applied) return;
  for (const Asker& asker : askers) answer(asker);
}

void Coordinator::apply(std::span<const std::byte> command) {
  const Result<std::vector<Command>> commands = decode_commands(command);
  // A majority has agreed on these bytes; to ignore what others apply would part the states.
  CAIRN_CHECK(commands.is_ok());
  const View before = state_.view();
  const MembershipState::Effect effect = state_.apply(*commands);
  for (const NodeId node : effect.renewed) renewed_at_[node] = now_ns_;
  if (!effect.has_changed_view || !consensus_->is_leader()) return;
  const auto is_death = [&](const Command& done) {
    return done.kind == CommandKind::kRemove && !state_.view().has(done.life) &&
           before.has(done.life);
  };
  deaths_ += static_cast<std::uint64_t>(std::ranges::count_if(*commands, is_death));
  publish(before);
}

Status Coordinator::restore(std::span<const std::byte> snapshot) {
  CAIRN_RETURN_IF_ERROR(state_.restore(snapshot));
  for (const ViewMember& member : state_.view().members) renewed_at_[member.life.node] = now_ns_;
  return Status::ok();
}

void Coordinator::answer(const Asker& asker) {
  const ViewMember* member = state_.view().find(asker.node);
  const Incarnation claimed = asker.request.incarnation;
  const bool is_member = member != nullptr && member->nonce == asker.request.nonce &&
                         (claimed == Incarnation::kNone || claimed == member->life.incarnation);
  send_answer(asker, is_member ? Verdict::kGranted : Verdict::kNoMember);
}

void Coordinator::send_answer(const Asker& asker, Verdict verdict) {
  const RenewAnswer answer{asker.request.request, asker.request.nonce, verdict, state_.settled(),
                           state_.ticket_for(asker.node)};
  ByteWriter payload;
  if (asker.request.epoch != state_.view().epoch) encode_view(payload, state_.view());
  send(asker.node, kAnswerMessage, encode(answer), payload.bytes());
}

void Coordinator::tell_elsewhere(const Asker& asker) {
  const ElsewhereAnswer answer{asker.request.request, consensus_->leader()};
  send(asker.node, kElsewhereMessage, encode(answer), {});
}

void Coordinator::publish(const View& before) {
  ByteWriter header;
  header.put(state_.settled());
  ByteWriter payload;
  encode_view(payload, state_.view());
  for (const NodeId node : state_.view().nodes()) {
    send(node, kViewMessage, header.bytes(), payload.bytes());
  }
  for (const NodeId node : before.nodes()) {
    if (state_.view().find(node) == nullptr)
      send(node, kViewMessage, header.bytes(), payload.bytes());
  }
}

void Coordinator::send(NodeId node, MessageType type, const Bytes& header, const Bytes& payload) {
  // The member asks again for one that is lost.
  (void)transport_.send(node, type, header, {payload, {}}, now_ns_ + kMembershipDeadlineNs);
}

}  // namespace cairn::cluster
