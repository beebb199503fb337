// SPDX-License-Identifier: Apache-2.0
#include "service/learning/order_search.h"

#include <utility>

#include "base/check.h"

namespace cairn::node {

OrderSearch::Found OrderSearch::look(DeclaredOrders& orders, const ToldAccess& told, BlockRun run,
                                     OrderReader reader, const PathOf& path_of) {
  if (reads_ >= kFirstReads) return {Outcome::kOver, nullptr};
  CAIRN_DCHECK(reads_ == 0 || !path_.empty());
  if (orders.is_empty()) {
    // Orders that are declared later speak of later opens.
    give_up();
    return {Outcome::kUndeclared, nullptr};
  }
  if (reads_ == 0) path_ = path_of(told);
  if (path_.empty() || !orders.has_order_of(path_)) {
    path_.clear();
    give_up();
    return {Outcome::kUndeclared, nullptr};
  }
  ++reads_;
  DeclaredOrder order = orders.order_from(path_, run, reader);
  if (order != nullptr) {
    give_up();
    return {Outcome::kFound, std::move(order)};
  }
  if (reads_ < kFirstReads) return {Outcome::kGoesOn, nullptr};
  // A stream that may have read before proves nothing.
  if (is_known_from_its_open_) orders.refute(path_);
  path_.clear();
  return {Outcome::kNotFound, nullptr};
}

}  // namespace cairn::node
