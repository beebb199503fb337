// SPDX-License-Identifier: Apache-2.0
// The bytes of a record in the log (docs/formats.md, "Durable log"). All numbers are little-endian.
//
//   header, 96 bytes    magic u32, kind u16, flags u16, payload bytes u32, zero u32,
//                       Lsn u64, segment u64, object u64, durable Lsn u64, time u64,
//                       three words u64 whose meaning depends on the kind,
//                       checksum of the payload u64, checksum of the header u64
//   payload             filled with zeros to a multiple of 8 bytes
//
//   kind       words                                     payload
//   kSegment   first Lsn, oldest segment, last Lsn       -
//              of the segment before                       the superblock's uuid and creation
//   kObject    flags of the state, size and time of the  EncodedIdentity
//              file on its store
//   kData      offset, size and time of the file         the bytes
//   kSize      0, size and time of the file              -
//   kRenamed   0, 0, 0                                   the path
//   kRemoved   0, 0, 0                                   -
//   kStoring   0, since, boot mark                       -
//   kStored    Lsn, size and time of the file on its     -
//              store
//   kCleanEnd  oldest segment with records that are not  -
//              stored, 0: none; 0, 0
//   kFreed     oldest segment in use, 0, 0               -
//   kNames     0, boot mark, 0                           name_change.h
//
// Checksums are XXH3 of 64 bits (Collet, xxhash.com), seeded with the log's own number and, for the
// header, the segment's: what an earlier use of the same file has left never passes for a record.
//
// Thread safety: pure functions. Ownership: values; spans point into the caller's bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "service/durable_log/log_record.h"

namespace cairn::durable {

using Bytes = std::span<const std::byte>;

inline constexpr std::uint32_t kRecordMagic = 0x524c4443;  // "CDLR"
inline constexpr std::size_t kRecordHeaderBytes = 96;
inline constexpr std::size_t kRecordAlignment = 8;
static_assert(kRecordHeaderBytes == 4 * 4 + 10 * 8);
static_assert(kRecordHeaderBytes % kRecordAlignment == 0);

// The service was still writing the file to its store when a kStored record was made.
inline constexpr std::uint16_t kFlagStillStoring = 1;
inline constexpr std::uint16_t kFlagsAll = kFlagStillStoring;

struct RecordHeader {
  RecordKind kind = RecordKind::kCleanEnd;
  std::uint16_t flags = 0;
  std::uint32_t payload_bytes = 0;
  Lsn lsn = Lsn::kNone;
  std::uint64_t segment = 0;
  LogObject object = LogObject::kNone;
  // Every record up to this one was durable when this one was written: if one of them cannot be
  // read, it was damaged, and is no torn end.
  Lsn durable = Lsn::kNone;
  std::int64_t time_ns = 0;  // CLOCK_REALTIME
  std::array<std::uint64_t, 3> words{};
  std::uint64_t payload_sum = 0;

  friend bool operator==(const RecordHeader&, const RecordHeader&) = default;
};

inline constexpr std::size_t kPayloadBytesMax = kDataBytesMax;
static_assert(kPathBytesMax + kHandleBytesMax + 256 < kPayloadBytesMax);
inline constexpr std::size_t kRecordBytesMax = kRecordHeaderBytes + kPayloadBytesMax;
static_assert(kRecordBytesMax % kRecordAlignment == 0);

// Bytes of a record with its header and filling.
constexpr std::size_t record_bytes(std::size_t payload_bytes) {
  return kRecordHeaderBytes +
         (payload_bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
}

using HeaderImage = std::array<std::byte, kRecordHeaderBytes>;

std::uint64_t payload_checksum(std::uint64_t log, Bytes payload);
HeaderImage encode_header(std::uint64_t log, const RecordHeader& header);
// The header at the beginning of `bytes`; none if it is not one of this log and segment, whole.
std::optional<RecordHeader> decode_header(std::uint64_t log, std::uint64_t segment, Bytes bytes);
// What every segment says of its log, so that a lost superblock can be made again.
inline constexpr std::size_t kLogNameBytes = 24;
struct LogName {
  std::uint64_t uuid[2] = {};
  std::int64_t created_ns = 0;
  std::uint64_t log() const { return uuid[0] ^ uuid[1]; }
};
std::array<std::byte, kLogNameBytes> encode_log_name(const LogName& name);
// Where the first record of a segment ends.
inline constexpr std::size_t kSegmentBegin = record_bytes(kLogNameBytes);
// The name in the first record of a segment; none unless the record is whole and of that log.
std::optional<LogName> decode_log_name(Bytes segment);
// The header of a segment, whichever it is.
std::optional<RecordHeader> decode_segment_header(std::uint64_t log, Bytes bytes);

// What a kObject record says besides its words.
struct ObjectStatement {
  FileIdentity identity;
  FileState store;
  StoringWindow window;
};

std::vector<std::byte> encode_object(const ObjectStatement& object);
// None where a length or a value is impossible.
std::optional<ObjectStatement> decode_object(const RecordHeader& header, Bytes payload);

}  // namespace cairn::durable
