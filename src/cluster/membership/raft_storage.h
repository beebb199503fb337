// SPDX-License-Identifier: Apache-2.0
// What a coordinator of Raft must remember when it is killed: term, vote, log, snapshot.
//
// A coordinator that comes back without it must not come back as the same voter: it could vote
// twice in one term. Every call returns when its change is durable.
//
// Thread safety: none: the coordinator's thread. Errors: a call that fails leaves the old state;
// the coordinator then stops (kUnavailable), it never goes on without.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/transport/byte_codec.h"

namespace cairn::cluster {

struct RaftEntry {
  std::uint64_t term = 0;
  std::uint16_t kind = 0;  // of libraft: a command, a barrier, a change of voters
  Bytes bytes;
};

struct RaftVoter {
  std::uint64_t id = 0;
  int role = 0;
  std::string address;
};

struct RaftSnapshot {
  std::uint64_t index = 0;  // it stands for all entries up to this one
  std::uint64_t term = 0;
  std::uint64_t voters_index = 0;
  std::vector<RaftVoter> voters;
  Bytes bytes;
};

struct RaftMemory {
  std::uint64_t term = 0;
  std::uint64_t vote = 0;  // 0: for nobody
  std::optional<RaftSnapshot> snapshot;
  std::uint64_t first_index = 1;  // of `entries`
  std::deque<RaftEntry> entries;
};

class RaftStorage {
 public:
  virtual ~RaftStorage() = default;
  virtual const RaftMemory& memory() const = 0;
  virtual Status set_term(std::uint64_t term) = 0;  // and no vote
  virtual Status set_vote(std::uint64_t vote) = 0;
  virtual Status append(std::vector<RaftEntry> entries) = 0;
  // Forgets the entry of that index and all behind it.
  virtual Status truncate(std::uint64_t index) = 0;
  // Forgets the entries that it stands for, but for the last `trailing`; with 0, all entries.
  virtual Status put_snapshot(RaftSnapshot snapshot, std::uint64_t trailing) = 0;
};

}  // namespace cairn::cluster
