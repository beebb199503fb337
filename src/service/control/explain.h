// SPDX-License-Identifier: Apache-2.0
// Where the bytes of one file are: what `cairn explain PATH` prints.
//
// Thread safety: any thread; a snapshot.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include <string>

#include "service/attachment/node_context.h"

namespace cairn::node {

// The object of a file, kNone when nothing of it is known here.
ObjectIndex find_file(const NodeMemory& memory, std::uint64_t device, std::uint64_t inode);

// What of a file is where and why, and which rules speak of it.
struct ExplainRequest {
  std::uint64_t device = 0;  // as stat(2) names the file
  std::uint64_t inode = 0;
  std::string path;  // canonical; empty: without the rules
  std::uint64_t size = 0;
};
nlohmann::json explain_file(const NodeContext& context, const ExplainRequest& request);

}  // namespace cairn::node
