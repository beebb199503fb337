// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/log_scan.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "service/durable_log/record_stream.h"

namespace cairn::durable {

namespace {

constexpr const char* kSegmentPrefix = "log.";

}  // namespace

std::string segment_name(std::uint64_t number) { return kSegmentPrefix + std::to_string(number); }

Result<LogScan> LogScan::open(LogStorage& storage, const Superblock& superblock) {
  auto names = storage.names();
  if (!names) return names.status();
  LogScan scan(superblock);
  for (const std::string& name : *names) {
    if (!name.starts_with(kSegmentPrefix)) continue;
    auto file = storage.open(name, OpenHow::kWrite);
    if (!file) return file.status();
    std::array<std::byte, kRecordHeaderBytes> image{};
    const std::int64_t got = (*file)->read(image, 0);
    if (got < 0) {
      return Status::from_errno(static_cast<int>(-got), storage.where() + "/" + name);
    }
    const auto header =
        decode_segment_header(superblock.log(), Bytes(image).first(static_cast<std::size_t>(got)));
    if (!header) {
      scan.spare_.push_back(name);
      continue;
    }
    scan.segments_.push_back({name, std::move(*file), *header, 0});
  }
  std::sort(scan.segments_.begin(), scan.segments_.end(),
            [](const LogSegment& left, const LogSegment& right) {
              return left.header.segment < right.header.segment;
            });
  CAIRN_RETURN_IF_ERROR(scan.drop_dead_segments());
  return scan;
}

// The newest segment says where the log began when it was started, and its end may say so again.
Status LogScan::drop_dead_segments() {
  if (segments_.empty()) return Status::ok();
  const LogSegment& newest = segments_.back();
  newest_ = newest.header.segment;
  std::uint64_t oldest = newest.header.words[1];
  SegmentReader reader(*newest.file, superblock_.log(), newest_);
  FoundRecord record;
  Found found = Found::kEnd;
  while ((found = reader.next(Payloads::kWhereCheap, record)) == Found::kRecord) {
    const std::uint64_t first = record.header.words[0];
    const bool ends = record.header.kind == RecordKind::kCleanEnd;
    if (ends && first == 0) oldest = newest_;
    if (ends || record.header.kind == RecordKind::kFreed) oldest = std::max(oldest, first);
  }
  if (found == Found::kError) return Status::from_errno(reader.error(), newest.name);
  // No node writes that the log begins behind its newest segment.
  oldest = std::min(oldest, newest_);
  const auto is_dead = [oldest](const LogSegment& segment) {
    return segment.header.segment < oldest;
  };
  for (const LogSegment& segment : segments_) {
    if (is_dead(segment)) spare_.push_back(segment.name);
  }
  std::erase_if(segments_, is_dead);
  CAIRN_CHECK(!segments_.empty());
  lacks_oldest_ = segments_.front().header.segment > oldest;
  return Status::ok();
}

Result<ScanReport> LogScan::run(Payloads payloads, const RecordVisitor& visit) {
  ScanReport report;
  waiting_.clear();
  durable_ = Lsn::kNone;
  next_ = 0;
  // Without its oldest segment the log has a gap before the first record that is left.
  if (!segments_.empty()) next_ = segments_.front().header.words[lacks_oldest_ ? 2 : 0];
  std::vector<SegmentFile> files;
  for (const LogSegment& segment : segments_)
    files.push_back({segment.file.get(), segment.header.segment});
  RecordStream stream(std::move(files), superblock_.log(), payloads);
  for (std::size_t index = 0; index < segments_.size(); ++index) {
    LogSegment& segment = segments_[index];
    note_segment(segment);
    std::uint64_t last = segment.header.words[0] - 1;
    RecordStream::Item item;
    while ((item = stream.next()).found != Found::kEnd) {
      if (item.found == Found::kError) return Status::from_errno(stream.error(), segment.name);
      const RecordHeader& header = item.record.header;
      if (header.kind == RecordKind::kSegment) continue;
      // Numbers grow along the file: anything else is the content of a damaged record.
      if (raw(header.lsn) <= last) continue;
      last = raw(header.lsn);
      segment.end = item.end;
      durable_ = std::max(durable_, header.durable);
      waiting_.push_back({std::move(item.record), index});
      drain(report, visit);
    }
  }
  CAIRN_RETURN_IF_ERROR(finish(report, visit));
  return report;
}

// A segment's header says where the log was when it was begun: what is left of the one before and
// comes later was a torn end already then.
void LogScan::note_segment(const LogSegment& segment) {
  durable_ = std::max(durable_, segment.header.durable);
  const std::uint64_t before = segment.header.words[2];
  std::erase_if(waiting_, [before](const Waiting& waiting) {
    return raw(waiting.record.header.lsn) > before;
  });
}

void LogScan::drain(ScanReport& report, const RecordVisitor& visit) {
  while (!waiting_.empty() && waiting_.front().record.header.lsn <= durable_) {
    pass(waiting_.front(), report, visit);
    waiting_.pop_front();
  }
}

void LogScan::pass(const Waiting& waiting, ScanReport& report, const RecordVisitor& visit) {
  const RecordHeader& header = waiting.record.header;
  const LogSegment& segment = segments_[waiting.segment];
  // The numbers that a node skipped after a torn end are no gap.
  const std::uint64_t first = segment.header.words[0];
  const std::uint64_t before = segment.header.words[2];
  if (next_ > before && next_ < first) next_ = first;
  if (next_ <= before && raw(header.lsn) >= first && before < first) {
    report.damage.push_back({static_cast<Lsn>(next_), static_cast<Lsn>(before), segment.name});
    next_ = first;
  }
  if (raw(header.lsn) > next_) {
    report.damage.push_back(
        {static_cast<Lsn>(next_), static_cast<Lsn>(raw(header.lsn) - 1), segment.name});
  }
  next_ = raw(header.lsn) + 1;
  ++report.records;
  report.bytes += header.payload_bytes;
  report.last = header.lsn;
  report.is_clean_end = header.kind == RecordKind::kCleanEnd;
  visit(waiting.record, segment);
}

Result<bool> LogScan::is_whole(Waiting& waiting) {
  FoundRecord& record = waiting.record;
  if (record.is_verified) return true;
  std::vector<std::byte> payload(record.header.payload_bytes);
  const std::int64_t got = segments_[waiting.segment].file->read(payload, record.payload_at);
  if (got < 0) {
    return Status::from_errno(static_cast<int>(-got), segments_[waiting.segment].name);
  }
  record.is_verified = static_cast<std::size_t>(got) == payload.size() &&
                       payload_checksum(superblock_.log(), payload) == record.header.payload_sum;
  return record.is_verified;
}

// What no record declares durable counts up to the first that is missing.
Status LogScan::finish(ScanReport& report, const RecordVisitor& visit) {
  while (!waiting_.empty()) {
    Waiting& waiting = waiting_.front();
    const LogSegment& segment = segments_[waiting.segment];
    const bool begins_segment = raw(waiting.record.header.lsn) == segment.header.words[0] &&
                                next_ == segment.header.words[2] + 1;
    auto whole = is_whole(waiting);
    if (!whole) return whole.status();
    if (!*whole || (raw(waiting.record.header.lsn) != next_ && !begins_segment)) {
      // Up to what was durable a gap is damage, and the log ends behind it.
      if (raw(durable_) >= next_) {
        report.damage.push_back({static_cast<Lsn>(next_), durable_, segment.name});
      }
      report.is_torn = true;
      report.torn = waiting_.size();
      waiting_.clear();
      break;
    }
    pass(waiting, report, visit);
    waiting_.pop_front();
  }
  if (!report.is_torn && next_ != 0 && raw(durable_) >= next_) {
    report.damage.push_back({static_cast<Lsn>(next_), durable_, "the end"});
  }
  return Status::ok();
}

}  // namespace cairn::durable
