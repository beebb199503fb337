// SPDX-License-Identifier: Apache-2.0
// What a simulated coordinator remembers: it outlives the crash of its host, as a disk does.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "cluster/membership/raft_storage.h"

namespace cairn::cluster {

class MemoryRaftStorage final : public RaftStorage {
 public:
  const RaftMemory& memory() const override { return memory_; }
  Status set_term(std::uint64_t term) override {
    CAIRN_CHECK(term >= memory_.term);
    memory_.term = term;
    memory_.vote = 0;
    return Status::ok();
  }
  Status set_vote(std::uint64_t vote) override {
    CAIRN_CHECK(memory_.vote == 0 || memory_.vote == vote || vote == 0);
    memory_.vote = vote;
    return Status::ok();
  }
  Status append(std::vector<RaftEntry> entries) override {
    std::ranges::move(entries, std::back_inserter(memory_.entries));
    return Status::ok();
  }
  Status truncate(std::uint64_t index) override {
    CAIRN_CHECK(index >= memory_.first_index);
    const std::uint64_t kept = index - memory_.first_index;
    if (kept < memory_.entries.size()) memory_.entries.resize(kept);
    return Status::ok();
  }
  Status put_snapshot(RaftSnapshot snapshot, std::uint64_t trailing) override {
    const std::uint64_t index = snapshot.index;
    memory_.snapshot = std::move(snapshot);
    if (trailing == 0) memory_.entries.clear();
    while (!memory_.entries.empty() && memory_.first_index + trailing <= index) {
      memory_.entries.pop_front();
      ++memory_.first_index;
    }
    if (memory_.entries.empty()) memory_.first_index = index + 1;
    return Status::ok();
  }

 private:
  RaftMemory memory_;
};

}  // namespace cairn::cluster
