// SPDX-License-Identifier: Apache-2.0
// The home of files: the node that answers for them, keeps one order of all their writes, and
// knows every node that holds a right to their bytes.
//
// A file
//
//   state         event                                        then
//   kAtHome       a node opens it that alone has it open,      kDelegated: the node reads and
//                 while no other node holds copies             writes it without a message
//   kDelegated    a request of any node                        kRecalling; the request waits
//   kRecalling    the node has returned it, or its life is     kAtHome; what waits is carried out
//                 out of the view
//
// A block, while its file is at home
//
//   state         event                                        then
//   (no copies)   a read                                       kShared: the reader gets a copy
//   (no copies)   a write                                      it is carried out, and returns
//   kShared       a write                                      kRevoking: every holder is to drop
//                                                              its copy; the write waits
//   kRevoking     a read                                       the bytes before the write, no copy
//   kRevoking     the last holder has dropped its copy, its    the writes are carried out in the
//                 lease is over or its life out of the view    order in which they came: no copies
//
// The state of a block is which of these lists are empty: holders, writes.
//
// Invariants
//   1. A write is carried out only while serves() is true and nobody holds a copy.
//   2. A request is carried out once: its number is remembered for its user and block as long as
//      this node is the file's home.
//   3. Messages of another view are refused: a right that was granted in it may be over.
//   4. A home that loses a file forgets it. The next home serves only when the view is settled,
//      that is when every member has dropped the rights that this one has granted.
//
// Thread safety: none. Ownership: borrows everything.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "cluster/ownership/authority.h"
#include "cluster/ownership/ownership_messages.h"

namespace cairn::cluster {

enum class FileState : std::uint8_t { kAtHome, kDelegated, kRecalling };

class FileHome {
 public:
  FileHome(Transport& transport, const Authority& authority, BlockStore& store,
           const OwnershipTerms& terms)
      : transport_(transport), authority_(authority), store_(store), terms_(terms) {}

  void on_message(const Message& message, std::int64_t now_ns);
  void tick(std::int64_t now_ns);
  // Behind each change of this node's view.
  void on_view(std::int64_t now_ns);

  // kAtHome for a file that the home does not know.
  FileState state_of(const LastingKey& file) const;
  std::size_t files() const { return files_.size(); }

 private:
  struct Holder {
    NodeLife life;
    std::int64_t until_ns = 0;
  };
  struct Waiting {
    NodeLife from;
    FileRequest request;
    Bytes bytes;
  };
  struct Block {
    std::vector<Holder> holders;
    std::deque<Waiting> writes;
    std::uint64_t revocation = 0;  // the one that is under way while writes wait
    std::int64_t revoke_again_ns = 0;
  };
  struct File {
    FileState state = FileState::kAtHome;
    NodeLife delegate;
    std::uint64_t delegation = 0;
    std::int64_t recall_again_ns = 0;
    std::set<NodeLife> users;  // that have it open
    std::deque<Waiting> waiting;
    std::map<BlockNumber, Block> blocks;
    // The last write of each user to each block that has been carried out.
    std::map<std::pair<NodeLife, BlockNumber>, std::uint64_t> carried_out;
  };

  void on_request(const Message& message, const FileRequest& request, std::int64_t now_ns);
  void on_revoked(const Message& message, std::int64_t now_ns);
  void on_returned(const Message& message, std::int64_t now_ns);
  bool is_known(const File& file, const Waiting& asked) const;
  void carry_out(File& file, Waiting asked, std::int64_t now_ns);
  void open(File& file, const Waiting& asked, std::int64_t now_ns);
  void read(File& file, const Waiting& asked, std::int64_t now_ns);
  void carry_out_writes(File& file, Block& block, std::int64_t now_ns);
  void recall(File& file, const LastingKey& key, std::int64_t now_ns);
  // Requires: serves(), because what waits is carried out.
  void come_home(File& file, std::int64_t now_ns);
  // Returns: whether the file still waits for anybody.
  bool advance(const LastingKey& key, File& file, std::int64_t now_ns);
  void reply(const Waiting& asked, Outcome outcome, const Bytes& bytes, std::int64_t now_ns);

  Transport& transport_;
  const Authority& authority_;
  BlockStore& store_;
  const OwnershipTerms terms_;
  NodeLife self_;                  // as which the files below are this node's
  std::uint64_t next_number_ = 1;  // of delegations and revocations
  std::map<LastingKey, File> files_;
  std::set<LastingKey> busy_;  // files that wait for somebody
};

}  // namespace cairn::cluster
