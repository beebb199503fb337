// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/raft_consensus.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "cluster/membership/libraft.h"
#include "cluster/membership/raft_codec.h"
#include "cluster/membership/raft_io.h"

namespace cairn::cluster {

namespace {

std::span<const std::byte> command_of(const raft_buffer& buffer) {
  return {static_cast<const std::byte*>(buffer.base), buffer.len};
}

StateMachine& machine_of(raft_fsm* fsm) { return *static_cast<StateMachine*>(fsm->data); }

int apply_command(raft_fsm* fsm, const raft_buffer* buffer, void** result) {
  machine_of(fsm).apply(command_of(*buffer));
  *result = nullptr;
  return 0;
}

int take_snapshot(raft_fsm* fsm, raft_buffer** buffers, unsigned* count) {
  const std::vector<std::byte> bytes = machine_of(fsm).snapshot();
  CAIRN_CHECK(!bytes.empty());
  auto* buffer = static_cast<raft_buffer*>(raft_malloc(sizeof(raft_buffer)));
  CAIRN_CHECK(buffer != nullptr);
  *buffer = {raft_malloc(bytes.size()), bytes.size()};
  CAIRN_CHECK(buffer->base != nullptr);
  std::memcpy(buffer->base, bytes.data(), bytes.size());
  *buffers = buffer;
  *count = 1;
  return 0;
}

int restore_snapshot(raft_fsm* fsm, raft_buffer* buffer) {
  if (!machine_of(fsm).restore(command_of(*buffer)).is_ok()) return RAFT_CORRUPT;
  raft_free(buffer->base);
  return 0;
}

struct Proposal {
  struct raft_apply request{};
  Consensus::Outcome outcome;
};

}  // namespace

struct RaftConsensus::Raft {
  Raft(Transport& transport, RaftStorage& storage, StateMachine& machine, RaftOptions with)
      : options(std::move(with)), io(transport, storage, options.seed) {
    fsm.version = 1;
    fsm.data = &machine;
    fsm.apply = apply_command;
    fsm.snapshot = take_snapshot;
    fsm.restore = restore_snapshot;
    self = transport.self();
  }
  Status failure(const char* what) {
    return {StatusCode::kUnavailable, std::string(what) + ": " + raft_errmsg(&raft)};
  }

  const RaftOptions options;
  NodeId self{};
  RaftIo io;
  raft_fsm fsm{};
  struct raft raft{};
};

RaftConsensus::RaftConsensus(Transport& transport, RaftStorage& storage, StateMachine& machine,
                             RaftOptions options)
    : raft_(std::make_unique<Raft>(transport, storage, machine, std::move(options))) {
  const std::string address = std::to_string(raw(raft_->self));
  CAIRN_CHECK(std::ranges::find(raft_->options.voters, raft_->self) != raft_->options.voters.end());
  CAIRN_CHECK(
      raft_init(&raft_->raft, raft_->io.io(), &raft_->fsm, raw(raft_->self), address.c_str()) == 0);
}

RaftConsensus::~RaftConsensus() {
  raft_close(&raft_->raft, [](struct raft*) {});
}

Status RaftConsensus::start(std::int64_t now_ns) {
  raft_->io.set_now(now_ns);
  struct raft* const raft = &raft_->raft;
  raft_set_election_timeout(raft, raft_->options.election_timeout_ms);
  raft_set_heartbeat_timeout(raft, raft_->options.heartbeat_ms);
  raft_set_snapshot_threshold(raft, raft_->options.snapshot_every);
  raft_set_snapshot_trailing(raft, raft_->options.entries_kept);
  // A node that was cut off must not depose a leader when it is back.
  raft_set_pre_vote(raft, true);
  raft_configuration voters{};
  raft_configuration_init(&voters);
  for (const NodeId voter : raft_->options.voters) {
    const std::string address = std::to_string(raw(voter));
    CAIRN_CHECK(raft_configuration_add(&voters, raw(voter), address.c_str(), RAFT_VOTER) == 0);
  }
  const int bootstrapped = raft_bootstrap(raft, &voters);
  raft_configuration_close(&voters);
  if (bootstrapped != 0 && bootstrapped != RAFT_CANTBOOTSTRAP) {
    return raft_->failure("the first state of the coordinators cannot be written");
  }
  if (raft_start(raft) != 0) return raft_->failure("the coordinator cannot start");
  return Status::ok();
}

bool RaftConsensus::is_leader() const { return raft_state(&raft_->raft) == RAFT_LEADER; }

std::uint64_t RaftConsensus::term() const { return raft_->raft.current_term; }

NodeId RaftConsensus::leader() const {
  raft_id id = 0;
  const char* address = nullptr;
  raft_leader(&raft_->raft, &id, &address);
  CAIRN_CHECK(id <= kNodesMax);
  return NodeId{static_cast<std::uint32_t>(id)};
}

Status RaftConsensus::propose(std::span<const std::byte> command, Outcome outcome) {
  if (!is_leader()) return {StatusCode::kUnavailable, "this coordinator does not lead"};
  CAIRN_CHECK(!command.empty());
  const raft_buffer buffer{raft_malloc(command.size()), command.size()};
  CAIRN_CHECK(buffer.base != nullptr);
  std::memcpy(buffer.base, command.data(), command.size());
  auto proposal = std::make_unique<Proposal>();
  proposal->outcome = std::move(outcome);
  proposal->request.data = proposal.get();
  const int error =
      raft_apply(&raft_->raft, &proposal->request, &buffer, 1,
                 [](struct raft_apply* request, int status, void*) {
                   const std::unique_ptr<Proposal> ended(static_cast<Proposal*>(request->data));
                   ended->outcome(status == 0);
                 });
  if (error != 0) {
    raft_free(buffer.base);
    return raft_->failure("a command is not accepted");
  }
  (void)proposal.release();
  return Status::ok();
}

void RaftConsensus::on_message(const Message& message, std::int64_t now_ns) {
  raft_->io.set_now(now_ns);
  // A node that is no voter has no say, whatever it sends.
  const std::vector<NodeId>& voters = raft_->options.voters;
  if (std::ranges::find(voters, message.from.node) == voters.end()) return;
  raft_->io.on_message(message);
}

void RaftConsensus::tick(std::int64_t now_ns) {
  raft_->io.set_now(now_ns);
  raft_->io.tick();
}

bool RaftConsensus::progress() { return raft_->io.progress(); }

}  // namespace cairn::cluster
