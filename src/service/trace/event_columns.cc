// SPDX-License-Identifier: Apache-2.0
#include "service/trace/event_columns.h"

#include <array>

#include "service/trace/varint.h"

namespace cairn {
namespace {

// Every event has a byte in each of the seven columns at least.
constexpr std::size_t kEventBytesMin = 7;
constexpr std::size_t kNameBytesMin = 2;

// What the next access of a file, process and stream is expected to be. Those that fall into the
// same place spoil each other's expectation and nothing else; both sides make the same mistake.
class Expectations {
 public:
  struct Access {
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
  };
  Access& of(const TraceEvent& event) {
    const std::uint32_t mixed =
        event.file * 0x9e3779b1U ^ event.process * 0x85ebca77U ^ event.stream * 0xc2b2ae3dU;
    return places_[mixed >> (32 - kPlaceBits)];
  }

 private:
  static constexpr unsigned kPlaceBits = 10;
  std::array<Access, std::size_t{1} << kPlaceBits> places_{};
};

void encode_times(TraceBytes* bytes, std::span<const TraceEvent> events) {
  std::uint64_t before = 0;
  for (const TraceEvent& event : events) {
    put_varint(bytes, fold_sign(event.time_ns - before));
    before = event.time_ns;
  }
}

bool decode_times(std::span<const std::uint8_t>* bytes, std::span<TraceEvent> events) {
  std::uint64_t before = 0;
  for (TraceEvent& event : events) {
    std::uint64_t folded = 0;
    if (!take_varint(bytes, &folded)) return false;
    event.time_ns = before += unfold_sign(folded);
  }
  return true;
}

bool take_difference_32(std::span<const std::uint8_t>* bytes, std::uint32_t* difference) {
  std::uint64_t folded = 0;
  if (!take_varint(bytes, &folded) || folded > UINT32_MAX) return false;
  *difference = unfold_sign_32(static_cast<std::uint32_t>(folded));
  return true;
}

using Column = std::uint32_t TraceEvent::*;
constexpr Column kNumberColumns[] = {&TraceEvent::file, &TraceEvent::process, &TraceEvent::stream};
static_assert(kEventBytesMin == 4 + std::size(kNumberColumns),
              "kind, time, offset and length, too");
// A number of 64 bits takes ten bytes at most, one of 32 bits five.
constexpr std::size_t kEventBytesMax = 1 + 2 * 10 + 5 + 5 * std::size(kNumberColumns);
static_assert(kEventBytesMax * kTraceEventsPerBlockMax <= kTraceBlockBytesMax);

void encode_numbers(TraceBytes* bytes, std::span<const TraceEvent> events, Column column) {
  std::uint32_t before = 0;
  for (const TraceEvent& event : events) {
    put_varint(bytes, fold_sign_32(event.*column - before));
    before = event.*column;
  }
}

bool decode_numbers(std::span<const std::uint8_t>* bytes, std::span<TraceEvent> events,
                    Column column) {
  std::uint32_t before = 0;
  for (TraceEvent& event : events) {
    std::uint32_t difference = 0;
    if (!take_difference_32(bytes, &difference)) return false;
    event.*column = before += difference;
  }
  return true;
}

// Lengths stand behind all offsets, but an offset is expected behind the length before: they are
// written to two columns in one pass.
void encode_ranges(TraceBytes* bytes, std::span<const TraceEvent> events) {
  Expectations expectations;
  TraceBytes lengths;
  for (const TraceEvent& event : events) {
    Expectations::Access& expected = expectations.of(event);
    put_varint(bytes, fold_sign(event.offset - expected.offset));
    put_varint(&lengths, fold_sign_32(event.length - expected.length));
    expected = {event.offset + event.length, event.length};
  }
  bytes->insert(bytes->end(), lengths.begin(), lengths.end());
}

bool decode_ranges(std::span<const std::uint8_t>* bytes, std::span<TraceEvent> events) {
  for (TraceEvent& event : events) {
    if (!take_varint(bytes, &event.offset)) return false;
  }
  Expectations expectations;
  for (TraceEvent& event : events) {
    std::uint32_t difference = 0;
    if (!take_difference_32(bytes, &difference)) return false;
    Expectations::Access& expected = expectations.of(event);
    event.offset = expected.offset + unfold_sign(event.offset);
    event.length = expected.length + difference;
    expected = {event.offset + event.length, event.length};
  }
  return true;
}

}  // namespace

TraceBytes encode_events(std::span<const TraceEvent> events) {
  TraceBytes bytes;
  bytes.reserve(events.size() * 2 * kEventBytesMin);
  for (const TraceEvent& event : events) bytes.push_back(static_cast<std::uint8_t>(event.kind));
  encode_times(&bytes, events);
  for (const Column column : kNumberColumns) encode_numbers(&bytes, events, column);
  encode_ranges(&bytes, events);
  return bytes;
}

bool decode_events(std::span<const std::uint8_t> bytes, std::uint32_t count,
                   std::vector<TraceEvent>* events) {
  events->clear();
  if (count > bytes.size() / kEventBytesMin) return false;
  events->resize(count);
  for (TraceEvent& event : *events) {
    if (bytes.front() >= kTraceKinds) return false;
    event.kind = static_cast<TraceKind>(bytes.front());
    bytes = bytes.subspan(1);
  }
  if (!decode_times(&bytes, *events)) return false;
  for (const Column column : kNumberColumns) {
    if (!decode_numbers(&bytes, *events, column)) return false;
  }
  return decode_ranges(&bytes, *events) && bytes.empty();
}

void encode_name(TraceBytes* bytes, bool is_process, std::string_view name) {
  bytes->push_back(is_process ? 1 : 0);
  put_varint(bytes, name.size());
  bytes->insert(bytes->end(), name.begin(), name.end());
}

bool decode_names(std::span<const std::uint8_t> bytes, std::uint32_t count,
                  std::vector<NewName>* names) {
  names->clear();
  if (count > bytes.size() / kNameBytesMin) return false;
  for (; count > 0; --count) {
    std::uint64_t length = 0;
    if (bytes.empty() || bytes.front() > 1) return false;
    const bool is_process = bytes.front() == 1;
    bytes = bytes.subspan(1);
    if (!take_varint(&bytes, &length) || length > bytes.size() || length > kTraceNameBytesMax) {
      return false;
    }
    names->push_back(
        {is_process,
         std::string(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length))});
    bytes = bytes.subspan(length);
  }
  return bytes.empty();
}

}  // namespace cairn
