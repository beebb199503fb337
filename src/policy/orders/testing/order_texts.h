// SPDX-License-Identifier: Apache-2.0
// Orders from the texts that declare them, and what is said of those that are refused.
//
// Thread safety: pure.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "policy/orders/epoch_order.h"

namespace cairn::testing {

inline Result<EpochOrder> try_order(const std::string& text) {
  auto declaration = parse_order(text);
  if (!declaration) return declaration.status();
  return EpochOrder::make(*declaration);
}

// Requires: it is one.
inline EpochOrder order_of(const std::string& text) {
  auto order = try_order(text);
  EXPECT_TRUE(order) << text << ": " << order.status().message();
  if (!order) std::abort();
  return std::move(order.value());
}

// `result` is a refusal of `text`, whose message has `part` in it.
template <typename T>
void expect_refusal(const Result<T>& result, const std::string& text, const std::string& part) {
  ASSERT_FALSE(result) << text;
  EXPECT_NE(result.status().message().find(part), std::string::npos) << result.status().message();
}

}  // namespace cairn::testing
