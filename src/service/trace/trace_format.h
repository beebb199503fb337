// SPDX-License-Identifier: Apache-2.0
// The layout of a trace file: a header, then blocks, each whole by itself. All numbers are
// little-endian; checksums are XXH64 with seed 0 (Collet, xxhash.com).
//
//   header, 32 bytes        magic[8], version u32, header bytes u32, start u64 (ns since 1970),
//                           checksum u64 of the 24 bytes before it
//   block, 40 bytes         magic u32, kind u8, coding u8, zero u16, stored bytes u32, raw bytes
//                           u32, entries u32, number u32 (0, 1, 2, ...), checksum u64 of the stored
//                           bytes, checksum u64 of the 32 bytes before it
//     and its stored bytes  as they are, or one zstd frame that makes the raw bytes
//
// A block of names comes before the events that use them; the last block is the end, whose raw
// bytes are the number of all events and the ns of I/O. A file without it was cut off. That a
// block's header has a checksum of its own is what tells a block that was cut off from one whose
// length is damaged.
//
// Thread safety: pure functions. Ownership: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cairn {

using TraceBytes = std::vector<std::uint8_t>;

// As in a PNG: neither text nor what is left of it after its line ends have been exchanged.
inline constexpr std::array<std::uint8_t, 8> kTraceMagic = {0x89, 'C',  'T',  'R',
                                                            'C',  '\r', '\n', 0x1a};
// Version 1 has no fsyncs, and nothing but the number of events in its end.
inline constexpr std::uint32_t kTraceVersion = 2;
inline constexpr std::uint32_t kTraceVersionFirst = 1;
inline constexpr std::size_t kTraceHeaderBytes = 32;
static_assert(kTraceHeaderBytes == 8 + 2 * 4 + 2 * 8);

inline constexpr std::uint32_t kTraceBlockMagic = 0x4b4c4243;  // "CBLK"
inline constexpr std::size_t kTraceBlockHeaderBytes = 40;
static_assert(kTraceBlockHeaderBytes == 4 + 1 + 1 + 2 + 4 * 4 + 2 * 8);
// The most raw bytes of a block. A reader holds no more than that twice, and its events.
inline constexpr std::uint32_t kTraceBlockBytesMax = 16U << 20;
inline constexpr std::uint32_t kTraceEventsPerBlockMax = 65'536;
inline constexpr std::size_t kTraceNameBytesMax = 65'535;

enum class TraceBlockKind : std::uint8_t { kNames = 1, kEvents = 2, kEnd = 3 };
enum class TraceBlockCoding : std::uint8_t { kStored = 0, kZstd = 1 };

struct TraceBlockHeader {
  TraceBlockKind kind = TraceBlockKind::kEnd;
  TraceBlockCoding coding = TraceBlockCoding::kStored;
  std::uint32_t stored_bytes = 0;
  std::uint32_t raw_bytes = 0;
  std::uint32_t entries = 0;  // names or events
  std::uint32_t number = 0;
  std::uint64_t checksum = 0;  // of the stored bytes
};

using TraceHeaderImage = std::array<std::uint8_t, kTraceHeaderBytes>;
using TraceBlockImage = std::array<std::uint8_t, kTraceBlockHeaderBytes>;

std::uint64_t trace_checksum(std::span<const std::uint8_t> bytes);

TraceHeaderImage make_trace_header(std::uint64_t start_unix_ns);

enum class TraceHeaderFault : std::uint8_t { kNone, kMagic, kVersion, kDamaged };
struct ReadTraceHeader {
  TraceHeaderFault fault = TraceHeaderFault::kNone;
  std::uint32_t version = 0;
  std::uint64_t start_unix_ns = 0;
};
ReadTraceHeader read_trace_header(const TraceHeaderImage& image);

TraceBlockImage make_block_header(const TraceBlockHeader& header);
// Returns: null, or what is wrong with it.
const char* read_block_header(const TraceBlockImage& image, TraceBlockHeader* header);

}  // namespace cairn
