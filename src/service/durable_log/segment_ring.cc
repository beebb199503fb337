// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/segment_ring.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/check.h"
#include "service/durable_log/log_scan.h"

namespace cairn::durable {

namespace {

// The newest, the one that only statements may begin, and one to free.
constexpr std::uint64_t kSegmentsMin = 3;
constexpr std::size_t kZeroBytes = std::size_t{1} << 20;

}  // namespace

SegmentRing::SegmentRing(LogStorage& storage, std::uint64_t segment_bytes,
                         std::uint64_t capacity_bytes)
    : storage_(storage),
      segment_bytes_(segment_bytes),
      segments_max_(std::max(kSegmentsMin, capacity_bytes / segment_bytes)) {
  CAIRN_CHECK(segment_bytes >= kRecordHeaderBytes);
}

void SegmentRing::allow_one_more() {
  segments_max_ = std::max<std::uint64_t>(segments_max_, used_.size() + 1);
}

std::uint64_t SegmentRing::unused() const {
  return used_.size() >= segments_max_ ? 0 : segments_max_ - used_.size();
}

std::string SegmentRing::next_name() { return segment_name(++last_name_); }

void SegmentRing::note_name(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return;
  last_name_ = std::max(
      last_name_, static_cast<std::uint64_t>(std::strtoull(name.c_str() + dot + 1, nullptr, 10)));
}

Result<ReadySegment> SegmentRing::make_segment(const std::string& name) {
  auto file = storage_.open(name, OpenHow::kCreate);
  if (!file) return file.status();
  const std::vector<std::byte> zeros(std::min<std::uint64_t>(kZeroBytes, segment_bytes_));
  int error = 0;
  for (std::uint64_t at = 0; at < segment_bytes_ && error == 0; at += zeros.size()) {
    const std::uint64_t bytes = std::min<std::uint64_t>(zeros.size(), segment_bytes_ - at);
    error = (*file)->write(Bytes(zeros).first(bytes), at);
  }
  if (error == 0) error = (*file)->flush();
  if (error == 0) error = storage_.sync_folder();
  if (error != 0) {
    storage_.remove(name);
    return Status::from_errno(-error, storage_.where() + "/" + name);
  }
  return ReadySegment{name, std::shared_ptr<LogFile>(std::move(*file))};
}

ReadySegment SegmentRing::take_ready() {
  CAIRN_CHECK(!ready_.empty());
  ReadySegment taken = std::move(ready_.back());
  ready_.pop_back();
  return taken;
}

UsedSegment* SegmentRing::find(std::uint64_t number) {
  const auto found = std::lower_bound(
      used_.begin(), used_.end(), number,
      [](const UsedSegment& segment, std::uint64_t wanted) { return segment.number < wanted; });
  return found == used_.end() || found->number != number ? nullptr : &*found;
}

bool SegmentRing::wants_ready() const {
  return ready_.empty() && used_.size() + freed_.size() < segments_max_;
}

bool SegmentRing::is_oldest_free(Lsn durable) const {
  if (used_.size() < 2) return false;
  const UsedSegment& oldest = used_.front();
  return oldest.live == 0 && oldest.last <= durable && oldest.freed_by <= durable;
}

ReadySegment SegmentRing::take_oldest() {
  CAIRN_CHECK(used_.size() > 1 && used_.front().live == 0);
  ReadySegment taken = std::move(used_.front().place);
  used_.pop_front();
  return taken;
}

void SegmentRing::add_freed(ReadySegment segment, Lsn said_by) {
  CAIRN_CHECK(said_by != Lsn::kNone);
  freed_.push_back({std::move(segment), said_by});
}

bool SegmentRing::settle_freed(Lsn durable) {
  const std::size_t before = ready_.size();
  for (FreedSegment& freed : freed_) {
    if (freed.said_by <= durable) ready_.push_back(std::move(freed.place));
  }
  std::erase_if(freed_, [durable](const FreedSegment& freed) { return freed.said_by <= durable; });
  return ready_.size() != before;
}

}  // namespace cairn::durable
