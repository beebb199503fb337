// SPDX-License-Identifier: Apache-2.0
// The small values that callers of the durable log give and get.
//
// Thread safety: values. Units: bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "service/durable_log/log_record.h"

namespace cairn::durable {

struct LogOptions {
  // The size of all segments together; at least three segments are used.
  std::uint64_t capacity_bytes = std::uint64_t{1} << 30;
  // The size of a segment in a new log; a log that exists keeps its own.
  std::uint64_t segment_bytes = std::uint64_t{64} << 20;
  // Gets the number of the last record before that is written; null: nobody wants it.
  std::atomic<std::uint64_t>* last = nullptr;
};

struct DataRange {
  std::uint64_t offset = 0;
  // At least one byte; at most kDataBytesMax, and a quarter of a segment.
  std::span<const std::byte> bytes;
};

// An object with records in the oldest segment, and the last of them there: once it is retired up
// to there, the segment is free of it.
struct PressingObject {
  LogObject object = LogObject::kNone;
  Lsn upto = Lsn::kNone;
};

// A directory with live records of its names.
struct LoggedDirectory {
  LogObject object = LogObject::kNone;
  FileIdentity identity;
};

// A file that nobody can reach, with live records: its store may not have lost it for certain.
struct RemovedObject {
  LogObject object = LogObject::kNone;
  Lsn removed = Lsn::kNone;
  FileIdentity identity;
};

struct LogFigures {
  std::uint64_t capacity_bytes = 0;
  std::uint64_t used_bytes = 0;  // of segments in use
  std::uint64_t segments = 0;    // in use
  std::uint64_t objects = 0;     // with live records
  std::uint64_t flushes = 0;     // of the device
  std::uint64_t commits = 0;     // served by them
  std::uint64_t appended_records = 0;
  std::uint64_t appended_bytes = 0;
};

}  // namespace cairn::durable
