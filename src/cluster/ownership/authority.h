// SPDX-License-Identifier: Apache-2.0
// What ownership wants to know from membership: homes of files, and whether this node may act.
//
// Thread safety: as its implementer's.
#pragma once

#include <cstdint>

#include "base/cluster_ids.h"
#include "base/object_key.h"

namespace cairn::cluster {

class Authority {
 public:
  virtual ~Authority() = default;
  virtual NodeLife self() const = 0;
  virtual Epoch epoch() const = 0;
  virtual bool has(NodeLife life) const = 0;
  // The node that answers for a file in this node's view.
  virtual NodeLife home_of(const LastingKey& file) const = 0;
  // Whether this node's lease holds.
  virtual bool may_serve(std::int64_t now_ns) const = 0;
  // Whether this node is the file's home, and no other node can be.
  virtual bool serves(const LastingKey& file, std::int64_t now_ns) const = 0;
};

}  // namespace cairn::cluster
