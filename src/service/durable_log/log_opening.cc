// SPDX-License-Identifier: Apache-2.0
//
// How a log is opened: what is there is taken over, and a new segment begins.
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "service/durable_log/log_core.h"
#include "service/durable_log/log_scan.h"

namespace cairn::durable {

namespace {

// The upper half of a segment's number counts the openings of the log. When the power went, a
// segment may have lost its header and kept whole records behind it: in a segment of the same
// number they would count. The header of an opening's first segment is flushed before anything is
// appended, so no opening has the count of another one that appended something.
std::uint64_t first_segment_behind(std::uint64_t newest) {
  constexpr unsigned kOpeningShift = 32;
  return ((newest >> kOpeningShift) + 1) << kOpeningShift;
}

}  // namespace

Status LogCore::start(FoundLog* found) {
  auto scan = LogScan::open(*storage_, superblock_.content);
  if (!scan) return scan.status();
  CAIRN_RETURN_IF_ERROR(adopt(*scan, found));
  Lock lock(mutex_);
  if (!ring_.has_ready()) {
    auto made = ring_.make_segment(ring_.next_name());
    if (!made) return made.status();
    ring_.add_ready(std::move(*made));
  }
  ring_.allow_one_more();
  UsedSegment first;
  first.number = first_segment_behind(scan->newest());
  first.place = ring_.take_ready();
  first.first = static_cast<Lsn>(raw(last_) + 1);
  first.last = last_;
  ring_.used().push_back(std::move(first));
  CAIRN_RETURN_IF_ERROR(write_segment_header(ring_.head()));
  const int error = ring_.head().place.file->flush();
  if (error != 0) return Status::from_errno(-error, storage_->where());
  leftovers_ = objects_.live_objects();
  free_segments(lock);
  if (!failure_.is_ok()) return failure_;
  try {
    preparer_ = std::thread([this] { prepare_loop(); });
    flusher_ = std::thread([this] { flush_loop(); });
  } catch (const std::system_error& problem) {
    lock.unlock();
    stop_threads();
    return Status::from_errno(problem.code().value(), "cannot start a thread of the durable log");
  }
  return Status::ok();
}

// What counts of the log is made durable, so that the next segment can say so.
Status LogCore::adopt(LogScan& scan, FoundLog* found) {
  for (const std::string& name : scan.spare()) ring_.note_name(name);
  for (LogSegment& segment : scan.segments()) ring_.note_name(segment.name);
  for (const LogSegment& segment : scan.segments()) {
    UsedSegment used;
    used.number = segment.header.segment;
    used.place.name = segment.name;
    used.first = static_cast<Lsn>(segment.header.words[0]);
    ring_.used().push_back(std::move(used));
  }
  auto report = scan.run(Payloads::kWhereCheap,
                         [this, found](const FoundRecord& record, const LogSegment& segment) {
                           ring_.find(segment.header.segment)->last = record.header.lsn;
                           note_found(record.header, record.payload);
                           if (found != nullptr) found->visit(record, segment);
                         });
  if (!report) return report.status();
  if (found != nullptr) found->report = *report;
  drop_idle_objects();
  for (LogSegment& segment : scan.segments()) {
    const int error = segment.file->flush();
    if (error != 0) return Status::from_errno(-error, storage_->where() + "/" + segment.name);
    UsedSegment* used = ring_.find(segment.header.segment);
    used->end = segment.end;
    used->place.file = std::shared_ptr<LogFile>(std::move(segment.file));
  }
  for (const std::string& name : scan.spare()) {
    auto file = storage_->open(name, OpenHow::kWrite);
    if (!file) return file.status();
    // A segment that was being made when the node died is short.
    if (static_cast<std::uint64_t>((*file)->size()) == ring_.segment_bytes()) {
      ring_.add_ready({name, std::shared_ptr<LogFile>(std::move(*file))});
    } else {
      storage_->remove(name);
    }
  }
  durable_ = report->last;
  last_ = report->last;
  return Status::ok();
}

void LogCore::drop_idle_objects() {
  std::vector<LogObject> numbers;
  for (const auto& entry : objects_.all()) numbers.push_back(static_cast<LogObject>(entry.first));
  for (const LogObject number : numbers) objects_.drop_idle(number);
}

void LogCore::note_found(const RecordHeader& header, Bytes payload) {
  if (header.kind == RecordKind::kObject) {
    const auto statement = decode_object(header, payload);
    if (!statement) return;
    LoggedObject* object = objects_.find(header.object);
    if (object == nullptr) {
      object = objects_.find(objects_.add(statement->identity, statement->store, header.object));
    }
    object->identity = statement->identity;
    object->store = statement->store;
    object->window = statement->window;
    object->is_held = false;
    return;
  }
  if (objects_.find(header.object) != nullptr) apply(header, payload);
}

}  // namespace cairn::durable
