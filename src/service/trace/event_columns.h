// SPDX-License-Identifier: Apache-2.0
// The raw bytes of a block: events column by column, each as the difference from what was to be
// expected, and names.
//
// Expected is what the event before had; of offset and length, where the last access of the same
// file, process and stream ended and how long it was. What a program reads in order is columns of
// zeros then, of which zstd leaves next to nothing.
//
//   events   kinds (a byte each), times, files, processes, streams, offsets, lengths
//   names    0 for a file or 1 for a process (a byte), length, bytes; and so on
//
// Thread safety: pure functions. Ownership: values.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "service/trace/trace_event.h"
#include "service/trace/trace_format.h"

namespace cairn {

TraceBytes encode_events(std::span<const TraceEvent> events);
// Returns: false when the bytes are not exactly so many events.
bool decode_events(std::span<const std::uint8_t> bytes, std::uint32_t count,
                   std::vector<TraceEvent>* events);

struct NewName {
  bool is_process = false;
  std::string name;
  friend bool operator==(const NewName&, const NewName&) = default;
};
void encode_name(TraceBytes* bytes, bool is_process, std::string_view name);
// Returns: false when the bytes are not exactly so many names.
bool decode_names(std::span<const std::uint8_t> bytes, std::uint32_t count,
                  std::vector<NewName>* names);

}  // namespace cairn
