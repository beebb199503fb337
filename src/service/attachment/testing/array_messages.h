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

// The array has 8 rows of 4 cells.
template <typename Message>
void set_array(Message& message, std::uint32_t object) {
  message.object = object;
  message.dimensions = 2;
  message.cell_bytes = 8;
  message.shape[0] = 8;
  message.shape[1] = 4;
}

// It is packed, in chunks of 3 rows.
template <typename Message>
void set_packed_array(Message& message, std::uint32_t object) {
  set_array(message, object);
  message.token[0] = 800;
  message.chunk[0] = 3;
  message.chunk[1] = 4;
  message.filters[0] = 2;
  message.filters[1] = 1;
}

// Its rows 2 and 3 are read.
template <typename Message>
void set_box(Message& message) {
  message.first[0] = 2;
  message.count[0] = 2;
  message.count[1] = 4;
}

inline protocol::ArrayReadMessage array_read(std::uint32_t object) {
  protocol::ArrayReadMessage message;
  set_array(message, object);
  set_box(message);
  message.offset = 100;
  return message;
}

inline protocol::ArrayNewsMessage array_news(std::uint32_t object) {
  protocol::ArrayNewsMessage message;
  set_packed_array(message, object);
  message.has_chunks = 1;
  message.layout = static_cast<std::uint32_t>(arrays::Layout::kChunked);
  message.served_bytes = 256;
  message.served_reads = 5;
  message.left_reads[static_cast<std::size_t>(arrays::LeftReason::kNotThere)] = 3;
  std::strcpy(message.name, "/group/x");
  return message;
}

inline protocol::PackedReadMessage packed_read(std::uint32_t object) {
  protocol::PackedReadMessage message;
  set_packed_array(message, object);
  set_box(message);
  return message;
}

}  // namespace cairn::testing
