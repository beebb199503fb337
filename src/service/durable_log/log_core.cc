// SPDX-License-Identifier: Apache-2.0
//
// The life of a log after its opening (log_opening.cc).
#include "service/durable_log/log_core.h"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/crash_point.h"

namespace cairn::durable {

namespace {

// Room in each segment for records that free others.
constexpr std::size_t kKeptBytes = 8 * kRecordHeaderBytes;
// Buffers kept for the next appends; more threads at a time allocate theirs.
constexpr std::size_t kBuffersKept = 8;

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

// What frees the log, or closes it, has room in the last segment, where nothing else may go.
bool is_statement(RecordKind kind) {
  return kind == RecordKind::kStoring || kind == RecordKind::kStored ||
         kind == RecordKind::kRemoved || kind == RecordKind::kCleanEnd;
}

Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

Status no_object() { return {StatusCode::kNotFound, "the durable log has no such object", ENOENT}; }

}  // namespace

LogCore::LogCore(std::unique_ptr<LogStorage> storage, OpenSuperblock superblock,
                 const LogOptions& options)
    : storage_(std::move(storage)),
      superblock_(std::move(superblock)),
      log_(superblock_.content.log()),
      boot_(boot_mark()),
      told_last_(options.last),
      ring_(*storage_, superblock_.content.segment_bytes, options.capacity_bytes) {}

LogCore::~LogCore() {
  (void)close().is_ok();
  CAIRN_CHECK(!flusher_.joinable() && !preparer_.joinable());
}

// The effect of a record on the table of objects, the same for a record that is appended and for
// one that is found.
void LogCore::apply(const RecordHeader& header, Bytes payload) {
  LoggedObject& object = *objects_.find(header.object);
  const auto release = [](void* core, std::uint64_t segment, Lsn by) {
    static_cast<LogCore*>(core)->release_segment(segment, by);
  };
  if (makes_live(header.kind)) {
    // It is there after all.
    object.removed = Lsn::kNone;
    if (objects_.add_live(header.object, header.segment, header.lsn)) {
      ++ring_.find(header.segment)->live;
    }
  }
  switch (header.kind) {
    case RecordKind::kRenamed:
      object.identity.path.assign(reinterpret_cast<const char*>(payload.data()), payload.size());
      break;
    case RecordKind::kNames:
      object.is_directory = true;
      break;
    case RecordKind::kRemoved:
      // Its records count until the store has lost the file.
      object.removed = header.lsn;
      object.removed_in = header.words[2];
      if (object.removed_in == 0)
        objects_.retire(header.object, header.lsn, header.lsn, release, this);
      break;
    case RecordKind::kStoring:
      object.window = {static_cast<std::int64_t>(header.words[1]), header.words[2]};
      break;
    case RecordKind::kStored:
      object.store = {header.words[1], static_cast<std::int64_t>(header.words[2])};
      if ((header.flags & kFlagStillStoring) == 0) object.window = {};
      objects_.retire(header.object, static_cast<Lsn>(header.words[0]), header.lsn, release, this);
      break;
    default:
      break;
  }
}

void LogCore::release_segment(std::uint64_t segment, Lsn by) {
  UsedSegment* used = ring_.find(segment);
  CAIRN_CHECK(used != nullptr && used->live > 0);
  --used->live;
  used->freed_by = std::max(used->freed_by, by);
}

Status LogCore::write_segment_header(UsedSegment& segment) {
  RecordHeader header;
  header.kind = RecordKind::kSegment;
  header.lsn = segment.first;
  header.segment = segment.number;
  header.durable = durable_;
  header.time_ns = now_ns();
  header.words = {raw(segment.first), ring_.used().front().number, raw(segment.last)};
  header.payload_bytes = kLogNameBytes;
  const Superblock& content = superblock_.content;
  const auto name = encode_log_name({{content.uuid[0], content.uuid[1]}, content.created_ns});
  header.payload_sum = payload_checksum(log_, name);
  std::array<std::byte, kSegmentBegin> image{};
  std::ranges::copy(encode_header(log_, header), image.begin());
  std::ranges::copy(name, image.begin() + kRecordHeaderBytes);
  const int error = segment.place.file->write(image, 0);
  if (error != 0) {
    return Status::from_errno(-error, storage_->where() + "/" + segment.place.name);
  }
  segment.end = kSegmentBegin;
  return Status::ok();
}

// ---- appending

LogObject LogCore::hold(const ObjectKey& key) {
  const Lock lock(mutex_);
  const LogObject number = objects_.find(key);
  if (number != LogObject::kNone) objects_.find(number)->is_held = true;
  return number;
}

Result<LogObject> LogCore::add_object(const FileIdentity& identity, const FileState& store) {
  if (identity.path.size() > kPathBytesMax || identity.handle.size() > kHandleBytesMax) {
    return Status(StatusCode::kInvalid, "a path is too long for the durable log", ENAMETOOLONG);
  }
  Lock lock(mutex_);
  const LogObject known = objects_.find(identity.key);
  if (known == LogObject::kNone) return objects_.add(identity, store);
  LoggedObject& object = *objects_.find(known);
  object.is_held = true;
  object.introduced_in = 0;
  object.identity = identity;
  object.store = store;
  return known;
}

std::string LogCore::path_of(LogObject number) const {
  const Lock lock(mutex_);
  const LoggedObject* object = objects_.find(number);
  return object == nullptr ? std::string() : object->identity.path;
}

void LogCore::forget(LogObject number) {
  const Lock lock(mutex_);
  LoggedObject* object = objects_.find(number);
  if (object == nullptr) return;
  object->is_held = false;
  objects_.drop_idle(number);
}

Result<Lsn> LogCore::append(const RecordDraft& draft) {
  if (draft.payload.size() > data_bytes_max()) {
    return Status(StatusCode::kInvalid, "too much for one record of the durable log", EINVAL);
  }
  std::vector<std::byte> buffer = take_buffer();
  buffer.resize(record_bytes(draft.payload.size()));
  if (!draft.payload.empty()) {
    std::memcpy(buffer.data() + kRecordHeaderBytes, draft.payload.data(), draft.payload.size());
  }
  std::fill(buffer.begin() + static_cast<std::ptrdiff_t>(kRecordHeaderBytes + draft.payload.size()),
            buffer.end(), std::byte{0});
  Lock lock(mutex_);
  auto lsn = append_locked(lock, draft, buffer);
  lock.unlock();
  give_back(std::move(buffer));
  return lsn;
}

Result<Lsn> LogCore::append_locked(Lock& lock, const RecordDraft& draft,
                                   std::vector<std::byte>& buffer) {
  CAIRN_CHECK(lock.owns_lock());
  // The sum is of the copy, which nobody changes any more.
  lock.unlock();
  const Bytes payload = Bytes(buffer).subspan(kRecordHeaderBytes, draft.payload.size());
  const std::uint64_t sum = payload_checksum(log_, payload);
  std::vector<std::byte> statement;
  lock.lock();
  const bool needs_object = draft.object != LogObject::kNone;
  while (true) {
    if (!failure_.is_ok()) return failure_;
    if (is_closed_ || is_ended_)
      return Status(StatusCode::kUnavailable, "the durable log is closed", ESHUTDOWN);
    const LoggedObject* object = needs_object ? objects_.find(draft.object) : nullptr;
    if (needs_object && object == nullptr) return no_object();
    // A statement about an object with live records needs no introduction: they have theirs.
    const bool introduces = needs_object && object->introduced_in != ring_.head().number &&
                            !(is_statement(draft.kind) && !object->live.empty());
    statement = introduces ? encode_object(object->statement()) : std::vector<std::byte>{};
    const std::size_t wanted = buffer.size() + (introduces ? record_bytes(statement.size()) : 0);
    const bool fits = ring_.head().end + wanted + kKeptBytes <= ring_.segment_bytes();
    if (fits && (is_statement(draft.kind) || ring_.unused() > 0)) break;
    CAIRN_RETURN_IF_ERROR(begin_segment(lock, is_statement(draft.kind)));
  }
  std::vector<Placed> placed;
  if (!statement.empty()) {
    LoggedObject& object = *objects_.find(draft.object);
    RecordDraft introduction{RecordKind::kObject, 0, draft.object, {}, statement};
    introduction.words = {0, object.store.size, static_cast<std::uint64_t>(object.store.mtime_ns)};
    placed.push_back(place(lock, introduction, payload_checksum(log_, statement)));
    object.introduced_in = ring_.head().number;
  }
  placed.push_back(place(lock, draft, sum));
  const Lsn lsn = placed.back().header.lsn;
  if (needs_object)
    apply(placed.back().header, draft.kind == RecordKind::kData ? Bytes{} : payload);
  lock.unlock();
  int error = 0;
  if (placed.size() > 1) {
    std::vector<std::byte> introduction(record_bytes(statement.size()));
    std::memcpy(introduction.data() + kRecordHeaderBytes, statement.data(), statement.size());
    error = write_record(placed.front(), introduction);
  }
  if (error == 0) error = write_record(placed.back(), buffer);
  lock.lock();
  for (const Placed& record : placed) in_flight_.erase(raw(record.header.lsn));
  if (error != 0) fail(lock, Status::from_errno(-error, storage_->where()));
  if (wanted_ > durable_ || in_flight_.empty()) flush_wanted_.notify_one();
  tell_pressure(lock);
  if (!failure_.is_ok()) return failure_;
  return lsn;
}

LogCore::Placed LogCore::place(Lock& lock, const RecordDraft& draft, std::uint64_t payload_sum) {
  CAIRN_CHECK(lock.owns_lock() && !is_ended_);
  is_ended_ = draft.kind == RecordKind::kCleanEnd;
  UsedSegment& head = ring_.head();
  Placed placed{head.place.file, head.end, {}};
  RecordHeader& header = placed.header;
  header.kind = draft.kind;
  header.flags = draft.flags;
  header.payload_bytes = static_cast<std::uint32_t>(draft.payload.size());
  header.lsn = static_cast<Lsn>(raw(last_) + 1);
  header.segment = head.number;
  header.object = draft.object;
  header.durable = durable_;
  header.time_ns = now_ns();
  header.words = draft.words;
  header.payload_sum = payload_sum;
  head.end += record_bytes(draft.payload.size());
  declared_bytes_ = durable_bytes_;
  CAIRN_CHECK(head.end <= ring_.segment_bytes());
  CAIRN_CHECK(header.lsn > head.last && header.lsn > durable_);
  head.last = last_ = header.lsn;
  if (told_last_ != nullptr) told_last_->store(raw(last_));
  in_flight_.emplace(raw(header.lsn), placed_bytes_);
  placed_bytes_ += record_bytes(draft.payload.size());
  ++figures_.appended_records;
  figures_.appended_bytes += draft.payload.size();
  return placed;
}

int LogCore::write_record(const Placed& placed, std::vector<std::byte>& buffer) {
  const HeaderImage image = encode_header(log_, placed.header);
  CAIRN_CHECK(buffer.size() == record_bytes(placed.header.payload_bytes));
  std::memcpy(buffer.data(), image.data(), image.size());
  CAIRN_CRASH_POINT("log.placed");
  const int error = placed.file->write(buffer, placed.at);
  CAIRN_CRASH_POINT("log.written");
  return error;
}

Status LogCore::begin_segment(Lock& lock, bool for_statement) {
  if (is_beginning_) {
    ready_changed_.wait(lock, [this] { return !is_beginning_ || !failure_.is_ok(); });
    return failure_;
  }
  // The last segment is for statements.
  if (ring_.unused() < (for_statement ? 1U : 2U)) {
    tell_pressure(lock);
    return {StatusCode::kExhausted, "the durable log is full", ENOSPC};
  }
  is_beginning_ = true;
  ready_changed_.notify_all();
  // A segment may be free, and the record that says so not durable yet.
  if (!ring_.has_ready() && ring_.has_freed()) wanted_ = last_;
  flush_wanted_.notify_one();
  ready_changed_.wait(lock, [this] { return ring_.has_ready() || !failure_.is_ok(); });
  is_beginning_ = false;
  ready_changed_.notify_all();
  if (!failure_.is_ok()) return failure_;
  UsedSegment next;
  next.number = ring_.head().number + 1;
  next.place = ring_.take_ready();
  next.first = static_cast<Lsn>(raw(last_) + 1);
  next.last = last_;
  ring_.used().push_back(std::move(next));
  ready_changed_.notify_all();
  CAIRN_CRASH_POINT("log.segment-named");
  const Status written = write_segment_header(ring_.head());
  CAIRN_CRASH_POINT("log.segment-begun");
  if (!written.is_ok()) fail(lock, written);
  return written;
}

Result<Lsn> LogCore::append_renamed(LogObject number, const std::string& path) {
  if (path.size() > kPathBytesMax) {
    return Status(StatusCode::kInvalid, "a path is too long for the durable log", ENAMETOOLONG);
  }
  {
    const Lock lock(mutex_);
    LoggedObject* object = objects_.find(number);
    if (object == nullptr) return no_object();
    if (object->live.empty()) {
      // Nothing of it has to be found again: its next statement has the new path.
      object->identity.path = path;
      object->introduced_in = 0;
      return Lsn::kNone;
    }
  }
  return append({RecordKind::kRenamed, 0, number, {0, 0, boot_}, bytes_of(path)});
}

Result<Lsn> LogCore::append_removed(LogObject number) {
  std::uint64_t boot = boot_;
  {
    const Lock lock(mutex_);
    const LoggedObject* object = objects_.find(number);
    if (object == nullptr) return no_object();
    if (object->live.empty()) return Lsn::kNone;
    // Without a time of birth the next file with its inode's number would be taken for it.
    if (object->identity.key.id.birth_ns == 0) boot = 0;
  }
  return append({RecordKind::kRemoved, 0, number, {0, 0, boot}, {}});
}

Result<Lsn> LogCore::begin_storing(LogObject number) {
  StoringWindow window{now_ns(), boot_};
  {
    const Lock lock(mutex_);
    LoggedObject* object = objects_.find(number);
    if (object == nullptr) return no_object();
    if (!failure_.is_ok()) return failure_;
    ++object->storing;
    // One of an earlier start of the machine says nothing of what is written now.
    if (object->window.is_open() && object->window.boot == boot_) return last_;
    if (object->live.empty()) {
      object->window = window;
      object->introduced_in = 0;
      return Lsn::kNone;
    }
  }
  return append({RecordKind::kStoring,
                 0,
                 number,
                 {0, static_cast<std::uint64_t>(window.since_ns), window.boot},
                 {}});
}

Status LogCore::retire(LogObject number, Lsn upto, const FileState& store) {
  RecordDraft draft{RecordKind::kStored, 0, number, {}, {}};
  draft.words = {raw(upto), store.size, static_cast<std::uint64_t>(store.mtime_ns)};
  {
    const Lock lock(mutex_);
    LoggedObject* object = objects_.find(number);
    if (object == nullptr) return no_object();
    if (object->storing > 0) --object->storing;
    if (object->storing > 0) draft.flags = kFlagStillStoring;
    if (object->live.empty()) {
      object->store = store;
      if (object->storing == 0) object->window = {};
      object->introduced_in = 0;
      return failure_;
    }
  }
  auto lsn = append(draft);
  if (!lsn) return lsn.status();
  const Lock lock(mutex_);
  objects_.drop_idle(number);
  return Status::ok();
}

// ---- what others see

bool LogCore::is_pressed(const Lock& lock) const {
  CAIRN_CHECK(lock.owns_lock());
  return ring_.used().size() * 4 >= ring_.segments_max() * 3 && objects_.live_objects() > 0;
}

void LogCore::tell_pressure(Lock& lock) {
  if (!pressure_call_ || !is_pressed(lock)) return;
  const std::uint64_t oldest = ring_.used().front().number;
  if (oldest == pressed_segment_) return;
  pressed_segment_ = oldest;
  lock.unlock();
  pressure_call_();
  lock.lock();
}

void LogCore::on_pressure(std::function<void()> call) {
  const Lock lock(mutex_);
  pressure_call_ = std::move(call);
}

Lsn LogCore::appended() const {
  const Lock lock(mutex_);
  return last_;
}

Lsn LogCore::durable() const {
  const Lock lock(mutex_);
  return durable_;
}

Status LogCore::health() const {
  const Lock lock(mutex_);
  return failure_;
}

std::vector<std::byte> LogCore::take_buffer() {
  const std::lock_guard lock(buffers_mutex_);
  if (buffers_.empty()) return {};
  std::vector<std::byte> taken = std::move(buffers_.back());
  buffers_.pop_back();
  return taken;
}

void LogCore::give_back(std::vector<std::byte> buffer) {
  const std::lock_guard lock(buffers_mutex_);
  if (buffers_.size() < kBuffersKept) buffers_.push_back(std::move(buffer));
}

// ---- the end

Status LogCore::close() {
  Status result;
  if (flusher_.joinable()) {
    RecordDraft end{RecordKind::kCleanEnd, 0, LogObject::kNone, {}, {}};
    {
      const Lock lock(mutex_);
      for (const UsedSegment& segment : ring_.used()) {
        if (segment.live > 0 && end.words[0] == 0) end.words[0] = segment.number;
      }
    }
    auto lsn = append(end);
    // Without a limit: the thread that flushes is waited for below in any case, because it works
    // with this log.
    result = lsn ? commit_until(*lsn, nullptr) : lsn.status();
  }
  stop_threads();
  return result;
}

void LogCore::stop_threads() {
  {
    const Lock lock(mutex_);
    is_closing_ = true;
    is_closed_ = true;
    flush_wanted_.notify_all();
    ready_changed_.notify_all();
  }
  if (flusher_.joinable()) flusher_.join();
  if (preparer_.joinable()) preparer_.join();
}

}  // namespace cairn::durable
