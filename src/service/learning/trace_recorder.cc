// SPDX-License-Identifier: Apache-2.0
#include "service/learning/trace_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "service/learning/accessed_file.h"
#include "service/learning/event_clock.h"

namespace cairn::node {
namespace {

TraceKind trace_kind_of(AccessKind kind) {
  switch (kind) {
    case AccessKind::kOpen:
      return TraceKind::kOpen;
    case AccessKind::kClose:
      return TraceKind::kClose;
    case AccessKind::kMiss:
      return TraceKind::kReadMiss;
    case AccessKind::kLate:
    case AccessKind::kFirstUse:
      return TraceKind::kReadPrefetched;
    case AccessKind::kWrite:
      return TraceKind::kWrite;
    case AccessKind::kAdvice:
      return TraceKind::kAdvice;
    case AccessKind::kSync:
      return TraceKind::kSync;
    default:
      return TraceKind::kReadHit;
  }
}

}  // namespace

void TraceRecorder::on_close(std::uint64_t session) {
  {
    const std::lock_guard lock(mutex_);
    if (writer_ == nullptr || session_ != session) return;
  }
  (void)stop();
}

Status TraceRecorder::start(const std::string& path, std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  if (writer_ != nullptr)
    return Status(StatusCode::kInvalid, "a trace is being recorded already, to " + path_);
  TraceWriterOptions options;
  options.start_unix_ns =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count());
  auto writer = TraceWriter::create(path, options);
  if (!writer) return writer.status();
  writer_ = std::move(writer.value());
  path_ = path;
  session_ = session;
  status_ = Status::ok();
  began_ns_ = monotonic_ns();
  lost_before_ = events_.counts().lost;
  io_ns_before_ = io_ns();
  files_.clear();
  processes_.clear();
  events_.ask_for(EventLevel::kWrites);
  return Status::ok();
}

std::uint64_t TraceRecorder::io_ns() const {
  return clients_.totals()[static_cast<unsigned>(Counter::kIoCycles)];
}

Result<TraceRecorder::Recorded> TraceRecorder::stop() {
  const std::lock_guard lock(mutex_);
  if (writer_ == nullptr) return Status(StatusCode::kInvalid, "no trace is being recorded");
  events_.ask_no_more(EventLevel::kWrites);
  const std::unique_ptr<TraceWriter> writer = std::move(writer_);
  const std::uint64_t io = io_ns();
  writer->set_io_ns(io - std::min(io, io_ns_before_));
  if (const Status status = writer->finish(); !status) return status;
  if (!status_) return status_;
  Recorded recorded;
  recorded.path = path_;
  recorded.events = writer->events();
  recorded.bytes = writer->file_bytes();
  CAIRN_CHECK(events_.counts().lost >= lost_before_);
  recorded.lost = events_.counts().lost - lost_before_;
  return recorded;
}

void TraceRecorder::on_accesses(std::span<const ToldAccess> batch) {
  const std::lock_guard lock(mutex_);
  if (writer_ == nullptr || !status_) return;
  const EventClock clock(memory_.identity().started);
  for (const ToldAccess& told : batch) {
    if (told.event.kind == AccessKind::kWaited) continue;  // recordings get the calls themselves
    const std::int64_t at = clock.nanos(told.event.cycles) - began_ns_;
    if (at >= 0 && told.event.object != ObjectIndex::kNone) status_ = append(told, at);
    if (!status_) return;
  }
}

// The name that the kernel has for the program's descriptor; of a program that has closed it since,
// what the file is.
Result<std::uint32_t> TraceRecorder::file_of(const ToldAccess& told) {
  const ObjectKey key = memory_.objects().at(told.event.object).key();
  const auto found = files_.find(raw(told.event.object));
  if (found != files_.end() && found->second.first == key) return found->second.second;
  const std::int32_t pid = memory_.slot(told.slot()).pid.load(std::memory_order_relaxed);
  auto number = writer_->file(name_of_accessed(pid, told.event.descriptor, key));
  if (number) files_.insert_or_assign(raw(told.event.object), std::pair(key, number.value()));
  return number;
}

Result<std::uint32_t> TraceRecorder::process_of(Owner owner) {
  const auto found = processes_.find(owner.slot());
  if (found != processes_.end() && found->second.first == owner) return found->second.second;
  const ClientSlot& slot = memory_.slot(owner.slot());
  const std::string command(slot.command, ::strnlen(slot.command, sizeof slot.command));
  auto number = writer_->process(fmt::format("{} {}", slot.pid.load(), command));
  if (number) processes_.insert_or_assign(owner.slot(), std::pair(owner, number.value()));
  return number;
}

Status TraceRecorder::append(const ToldAccess& told, std::int64_t at_ns) {
  CAIRN_CHECK(writer_ != nullptr);
  CAIRN_CHECK(at_ns >= 0);
  const auto file = file_of(told);
  if (!file) return file.status();
  const auto process = process_of(told.event.owner);
  if (!process) return process.status();
  TraceEvent event;
  event.time_ns = static_cast<std::uint64_t>(at_ns);
  event.offset = told.event.offset;
  event.length = told.event.length;
  event.file = file.value();
  event.process = process.value();
  event.stream = raw(told.event.stream);
  event.kind = trace_kind_of(told.event.kind);
  return writer_->append(event);
}

}  // namespace cairn::node
