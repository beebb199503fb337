// SPDX-License-Identifier: Apache-2.0
// Messages of libraft as bytes, and memory in the shape in which libraft takes it over.
//
// Thread safety: pure functions. Ownership: what libraft is to own is allocated by raft_malloc();
// an OwnedRaftMessage frees it unless released.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "cluster/membership/libraft.h"
#include "cluster/membership/raft_storage.h"
#include "cluster/transport/byte_codec.h"

namespace cairn::cluster {

Bytes encode_raft_message(const raft_message& message);

// A message that was read. recv of libraft takes the entries or the snapshot over.
class OwnedRaftMessage {
 public:
  OwnedRaftMessage() = default;
  ~OwnedRaftMessage();
  OwnedRaftMessage(const OwnedRaftMessage&) = delete;
  OwnedRaftMessage& operator=(const OwnedRaftMessage&) = delete;

  // Errors: kInvalid.
  Status decode(std::span<const std::byte> bytes);
  // For libraft, which owns what it points to from now on. Requires: decode() was ok.
  raft_message* release();

 private:
  Status decode_entries(ByteReader& reader);
  Status decode_snapshot(ByteReader& reader);

  raft_message message_{};
  bool owns_ = false;
};

// Entries in one allocation for the array and one for all bytes, as libraft frees them.
struct RaftEntryArray {
  raft_entry* entries = nullptr;
  std::size_t count = 0;
};
RaftEntryArray make_raft_entries(std::span<const RaftEntry* const> entries);
RaftEntry copy_of(const raft_entry& entry);
// Null when memory is short.
raft_snapshot* make_raft_snapshot(const RaftSnapshot& snapshot);
RaftSnapshot copy_of(const raft_snapshot& snapshot);
std::vector<RaftVoter> voters_of(const raft_configuration& configuration);
// Adds to an initialised configuration. Errors: kInvalid for what libraft refuses.
Status add_voters(raft_configuration& configuration, std::span<const RaftVoter> voters);

}  // namespace cairn::cluster
