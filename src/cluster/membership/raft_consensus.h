// SPDX-License-Identifier: Apache-2.0
// Consensus by libraft (Debian's libraft-dev), in process.
//
// Example:
//   RaftConsensus consensus(transport, storage, state_machine, {.voters = {1, 2, 3}, .seed = 7});
//   CAIRN_RETURN_IF_ERROR(consensus.start(now_ns));
//
// Thread safety: none: the coordinator's thread. Ownership: borrows transport, storage and state
// machine, which outlive it. Its destruction is a crash as far as others can see.
#pragma once

#include <memory>
#include <vector>

#include "cluster/membership/consensus.h"
#include "cluster/membership/lease_terms.h"
#include "cluster/membership/raft_storage.h"

namespace cairn::cluster {

struct RaftOptions {
  std::vector<NodeId> voters;
  std::uint64_t seed = 0;  // of election time-outs
  std::uint32_t election_timeout_ms = 500;
  std::uint32_t heartbeat_ms = 100;
  // A snapshot after so many entries; so many stay behind it for those who are late. A message
  // carries all that a peer lacks: up to their sum of entries, each of up to 21 bytes per node,
  // which is a payload of 1 MiB with 1,000 nodes.
  std::uint32_t snapshot_every = 32;
  std::uint32_t entries_kept = 8;
};

class RaftConsensus final : public Consensus {
 public:
  RaftConsensus(Transport& transport, RaftStorage& storage, StateMachine& machine,
                RaftOptions options);
  ~RaftConsensus() override;
  RaftConsensus(const RaftConsensus&) = delete;
  RaftConsensus& operator=(const RaftConsensus&) = delete;

  // Goes on with what the storage has, or begins with nothing but the voters. Called once.
  // Errors: kUnavailable with libraft's message.
  Status start(std::int64_t now_ns);

  bool is_leader() const override;
  std::uint64_t term() const override;
  NodeId leader() const override;
  Status propose(std::span<const std::byte> command, Outcome outcome) override;
  void on_message(const Message& message, std::int64_t now_ns) override;
  void tick(std::int64_t now_ns) override;
  bool progress() override;

 private:
  struct Raft;
  std::unique_ptr<Raft> raft_;
};

}  // namespace cairn::cluster
