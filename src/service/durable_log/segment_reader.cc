// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/segment_reader.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace cairn::durable {

namespace {

constexpr std::size_t kAheadMin = 4096;
constexpr std::size_t kAheadMax = std::size_t{1} << 20;
// A payload of this size is jumped over; a smaller one is read with what follows.
constexpr std::size_t kJumpBytes = 32U << 10;
// So many headers behind large payloads the device reads at a time.
constexpr std::uint64_t kHeadersAhead = 32;

}  // namespace

SegmentReader::SegmentReader(LogFile& file, std::uint64_t log, std::uint64_t segment)
    : file_(file), log_(log), segment_(segment), ahead_(kAheadMin) {
  CAIRN_CHECK(segment != 0);
}

Bytes SegmentReader::window(std::uint64_t offset, std::size_t wanted) {
  if (offset < buffer_at_ || offset + wanted > buffer_at_ + buffered_) {
    const bool goes_on = offset >= buffer_at_ && offset <= buffer_at_ + buffered_;
    ahead_ = goes_on ? std::min(ahead_ * 2, kAheadMax) : kAheadMin;
    const std::size_t bytes = std::max(wanted, ahead_);
    if (buffer_.size() < bytes) buffer_.resize(bytes);
    const std::int64_t got = file_.read(std::span(buffer_).first(bytes), offset);
    if (got < 0) error_ = static_cast<int>(-got);
    buffer_at_ = offset;
    buffered_ = got < 0 ? 0 : static_cast<std::size_t>(got);
  }
  const std::size_t from = static_cast<std::size_t>(offset - buffer_at_);
  CAIRN_CHECK(from <= buffered_);
  return Bytes(buffer_).subspan(from, buffered_ - from);
}

bool SegmentReader::accept(Payloads payloads, std::uint64_t offset, FoundRecord& record) {
  const auto header = decode_header(log_, segment_, window(offset, kRecordHeaderBytes));
  if (!header) return false;
  record.header = *header;
  record.payload_at = offset + kRecordHeaderBytes;
  record.payload.clear();
  record.is_verified = false;
  const bool is_data = header->kind == RecordKind::kData;
  const bool jumps =
      is_data && payloads == Payloads::kWhereCheap && header->payload_bytes >= kJumpBytes;
  if (!jumps) {
    const Bytes payload = window(record.payload_at, header->payload_bytes);
    if (payload.size() < header->payload_bytes) return false;
    const Bytes whole = payload.first(header->payload_bytes);
    if (payload_checksum(log_, whole) != header->payload_sum) return false;
    record.is_verified = true;
    if (!is_data) record.payload.assign(whole.begin(), whole.end());
  }
  at_ = offset + record_bytes(header->payload_bytes);
  const std::uint64_t stride = at_ - offset;
  if (jumps && stride == last_stride_) read_headers_ahead(stride);
  last_stride_ = stride;
  return true;
}

// Records of one large write have one size: two of a size are taken for the beginning of more.
void SegmentReader::read_headers_ahead(std::uint64_t stride) {
  CAIRN_CHECK(stride >= kJumpBytes);
  if (stride != told_stride_ || told_ < at_) told_ = at_;
  told_stride_ = stride;
  if (told_ > at_ + kHeadersAhead / 2 * stride) return;
  for (; told_ < at_ + kHeadersAhead * stride; told_ += stride) file_.read_ahead(told_, kAheadMin);
}

Found SegmentReader::next(Payloads payloads, FoundRecord& record) {
  if (error_ != 0) return Found::kError;
  const std::uint64_t before = at_;
  if (accept(payloads, at_, record)) return Found::kRecord;
  if (error_ != 0) return Found::kError;
  CAIRN_CHECK(at_ == before);
  return seek(payloads, record);
}

Found SegmentReader::seek(Payloads payloads, FoundRecord& record) {
  std::uint64_t offset = at_ + kRecordAlignment;
  while (error_ == 0) {
    const Bytes bytes = window(offset, kAheadMin);
    if (bytes.size() < kRecordHeaderBytes) break;
    const std::size_t places = (bytes.size() - kRecordHeaderBytes) / kRecordAlignment + 1;
    std::size_t place = 0;
    for (; place < places; ++place) {
      std::uint32_t magic = 0;
      std::memcpy(&magic, bytes.data() + place * kRecordAlignment, sizeof magic);
      if (magic == kRecordMagic) break;
    }
    offset += place * kRecordAlignment;
    if (place == places) continue;
    if (accept(payloads, offset, record)) return Found::kSkippedRecord;
    offset += kRecordAlignment;
  }
  return error_ != 0 ? Found::kError : Found::kEnd;
}

}  // namespace cairn::durable
