// SPDX-License-Identifier: Apache-2.0
// Reads the records of one segment one after the other. Finds the next one that is whole after one
// that is not.
//
// Thread safety: none. Ownership: borrows the file. Reads ahead where records are small, and jumps
// over large payloads that nobody wants.
#pragma once

#include <cstdint>
#include <vector>

#include "service/durable_log/log_storage.h"
#include "service/durable_log/record_format.h"

namespace cairn::durable {

struct FoundRecord {
  RecordHeader header;
  std::uint64_t payload_at = 0;  // in the segment's file
  // Empty unless it was wanted: a kData record's is verified or jumped over, never kept.
  std::vector<std::byte> payload;
  bool is_verified = false;  // the payload has the header's checksum
};

enum class Payloads : std::uint8_t { kVerified, kWhereCheap };

enum class Found : std::uint8_t {
  kRecord,
  kSkippedRecord,  // the same, but bytes before it were no record of this segment
  kEnd,            // nothing more
  kError,          // error() says which
};

class SegmentReader {
 public:
  SegmentReader(LogFile& file, std::uint64_t log, std::uint64_t segment);

  Found next(Payloads payloads, FoundRecord& record);
  int error() const { return error_; }
  // Where the last record that was found ends.
  std::uint64_t end() const { return at_; }

 private:
  // The file's bytes at `offset`, at least `wanted` of them unless the file ends before.
  Bytes window(std::uint64_t offset, std::size_t wanted);
  bool accept(Payloads payloads, std::uint64_t offset, FoundRecord& record);
  void read_headers_ahead(std::uint64_t stride);
  Found seek(Payloads payloads, FoundRecord& record);

  LogFile& file_;
  std::uint64_t log_;
  std::uint64_t segment_;
  std::uint64_t at_ = 0;
  int error_ = 0;
  std::vector<std::byte> buffer_;
  std::uint64_t buffer_at_ = 0;
  std::size_t buffered_ = 0;
  std::size_t ahead_;  // bytes that the next read takes at least
  std::uint64_t last_stride_ = 0;
  // The device has been told of headers that are probably there, up to here, so far apart.
  std::uint64_t told_ = 0;
  std::uint64_t told_stride_ = 0;
};

}  // namespace cairn::durable
