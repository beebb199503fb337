// SPDX-License-Identifier: Apache-2.0
// A node's use of files: operations that it carries out itself by the rights that it holds, and
// sends to the file's home otherwise.
//
//   right        is granted with            lets this node                ends with
//   delegation   the answer to an open      read and write the file       a recall; another home;
//                                                                         another life of this node
//   copy         the answer to a read       read the block                a revocation; its time;
//                                                                         a write of this node;
//                                                                         another home or life
//
// Every use of a right needs may_serve() as well: a node without a lease may be dead for others,
// who then wait for none of its rights.
//
// A notice may overtake the grant that it ends. So a revocation also spoils the reads that are
// under way to that block, and a recall the delegation of that number and all before it.
//
// A write whose home is replaced before it answers fails, because nobody knows whether it was
// carried out, and it is never sent twice to two homes. A read is sent to the next home.
//
// Thread safety: none. Ownership: borrows everything. Callbacks come from the calls that make an
// operation end, which may be the operation itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "cluster/ownership/authority.h"
#include "cluster/ownership/ownership_messages.h"

namespace cairn::cluster {

class FileUser {
 public:
  // Whether the operation was carried out; the bytes of a read. A write that was not may still be.
  using Done = std::function<void(bool is_carried_out, const Bytes& bytes)>;

  FileUser(Transport& transport, const Authority& authority, BlockStore& store,
           const OwnershipTerms& terms)
      : transport_(transport), authority_(authority), store_(store), terms_(terms) {}

  void open(const LastingKey& file, std::int64_t now_ns, Done done);
  void close(const LastingKey& file, std::int64_t now_ns, Done done);
  void read(const BlockName& name, std::int64_t now_ns, Done done);
  // Requires: !is_writing(name): a home knows the last write of a node to a block, and no other.
  void write(const BlockName& name, Bytes bytes, std::int64_t now_ns, Done done);

  void on_message(const Message& message, std::int64_t now_ns);
  void tick(std::int64_t now_ns);
  // Behind each change of this node's view.
  void on_view(std::int64_t now_ns);

  // Whether a write of this node to the block has not ended.
  bool is_writing(const BlockName& name) const;
  bool has_delegation(const LastingKey& file, std::int64_t now_ns) const;
  bool has_copy(const BlockName& name, std::int64_t now_ns) const;
  std::uint64_t requests_sent() const { return requests_sent_; }

 private:
  // A right counts while the home that granted it and the life that it was granted to are those of
  // the view.
  struct Grant {
    NodeLife home;
    NodeLife holder;
  };
  struct Delegation {
    Grant grant;
    std::uint64_t number = 0;
  };
  struct Copy {
    Grant grant;
    std::int64_t until_ns = 0;
    Bytes bytes;
  };
  struct Operation {
    FileRequest request;
    Bytes bytes;
    Done done;
    NodeLife home;  // that it was sent to; none: to nobody yet
    NodeLife self;  // as which it was sent
    std::int64_t begun_ns = 0;
    std::int64_t first_sent_ns = 0;
    std::int64_t next_send_ns = 0;
    bool may_keep = true;  // no notice has come since it was sent
  };

  void begin(FileRequest request, Bytes bytes, std::int64_t now_ns, Done done);
  // Returns: whether the operation has ended.
  bool send(Operation& operation, std::int64_t now_ns);
  void on_reply(const Message& message, std::int64_t now_ns);
  void on_revoke(const Message& message, const Notice& notice, std::int64_t now_ns);
  void on_recall(const Message& message, const Notice& notice, std::int64_t now_ns);
  void keep(const Operation& operation, const FileReply& reply, const Message& message);
  bool counts(const Grant& grant, const LastingKey& file) const;
  void end(std::uint64_t number, bool is_carried_out, const Bytes& bytes);

  Transport& transport_;
  const Authority& authority_;
  BlockStore& store_;
  const OwnershipTerms terms_;
  std::uint64_t next_number_ = 1;
  std::uint64_t requests_sent_ = 0;
  std::map<std::uint64_t, Operation> operations_;
  std::map<LastingKey, Delegation> delegations_;
  std::map<BlockName, Copy> copies_;
  // The last delegation of each file that its home has recalled.
  std::map<LastingKey, Delegation> recalled_;
};

}  // namespace cairn::cluster
