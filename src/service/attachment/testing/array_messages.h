// SPDX-License-Identifier: Apache-2.0
// Right messages of clients about arrays, of the file with that object.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <cstring>

#include "frontends/protocol/protocol.h"
#include "policy/arrays/dataset_news.h"

namespace cairn::testing {

// Rows 2 and 3 of an array of 8 rows of 4 cells.
inline protocol::ArrayReadMessage array_read(std::uint32_t object) {
  protocol::ArrayReadMessage message;
  message.object = object;
  message.dimensions = 2;
  message.cell_bytes = 8;
  message.offset = 100;
  message.shape[0] = 8;
  message.shape[1] = 4;
  message.first[0] = 2;
  message.count[0] = 2;
  message.count[1] = 4;
  return message;
}

// A packed array of 8 rows of 4 cells, in chunks of 3 rows.
inline protocol::ArrayNewsMessage array_news(std::uint32_t object) {
  protocol::ArrayNewsMessage message;
  message.object = object;
  message.dimensions = 2;
  message.has_chunks = 1;
  message.layout = static_cast<std::uint32_t>(arrays::Layout::kChunked);
  message.cell_bytes = 8;
  message.token[0] = 800;
  message.shape[0] = 8;
  message.shape[1] = 4;
  message.chunk[0] = 3;
  message.chunk[1] = 4;
  message.filters[0] = 2;
  message.filters[1] = 1;
  message.served_bytes = 256;
  message.served_reads = 5;
  message.left_reads[static_cast<std::size_t>(arrays::LeftReason::kNotThere)] = 3;
  std::strcpy(message.name, "/group/x");
  return message;
}

// Rows 2 and 3 of the same, as its connector tells of them.
inline protocol::PackedReadMessage packed_read(std::uint32_t object) {
  protocol::PackedReadMessage message;
  message.object = object;
  message.dimensions = 2;
  message.filters[0] = 2;
  message.filters[1] = 1;
  message.cell_bytes = 8;
  message.token[0] = 800;
  message.shape[0] = 8;
  message.shape[1] = 4;
  message.chunk[0] = 3;
  message.chunk[1] = 4;
  message.first[0] = 2;
  message.count[0] = 2;
  message.count[1] = 4;
  return message;
}

}  // namespace cairn::testing
