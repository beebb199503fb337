// SPDX-License-Identifier: Apache-2.0
// Where one stream is in the declared orders of its file: its first reads show which epoch of which
// declaration it goes through. A stream that was followed from its open on and begins like none of
// them refutes what is declared of the file.
//
// Thread safety: none. Ownership: a value; borrows the orders for each call.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "policy/prefetch/predictor.h"
#include "policy/prefetch/stream_hints.h"
#include "service/learning/access_observer.h"
#include "service/learning/declared_orders.h"
#include "service/learning/read_events.h"

namespace cairn::node {

// The path of the file that a process accesses; empty when it is not known.
using PathOf = std::function<std::string(const ToldAccess& told)>;

class OrderSearch {
 public:
  enum class Outcome : std::uint8_t {
    kOver,        // it ended at an earlier read
    kUndeclared,  // nothing is declared of the file; it ends here
    kGoesOn,      // the next read may tell
    kFound,       // `order` is what the stream reads from its present run on; it ends here
    kNotFound     // it ends here in vain
  };

  struct Found {
    Outcome outcome = Outcome::kOver;
    DeclaredOrder order;  // not null where the outcome is kFound
  };
  // `run` is what the stream reads now, and `reader` uses the order.
  Found look(DeclaredOrders& orders, const ToldAccess& told, BlockRun run, OrderReader reader,
             const PathOf& path_of);

  // The stream has been heard of since its open: its first reads are the file's first.
  void note_open() { is_known_from_its_open_ = true; }
  bool is_begun() const { return reads_ != 0; }
  void give_up() { reads_ = kFirstReads; }
  // Empty until the search has begun; afterwards that of a file of which an order is declared.
  const std::string& path() const { return path_; }
  void forget_path() { path_.clear(); }

 private:
  std::string path_;
  unsigned reads_ = 0;  // that were looked at
  bool is_known_from_its_open_ = false;
};

}  // namespace cairn::node
