// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/log_check.h"

#include <algorithm>
#include <map>
#include <optional>

namespace cairn::durable {

namespace {

// The superblock that all segments name; none where they disagree, or there are none.
Result<std::optional<Superblock>> superblock_of_segments(LogStorage& storage) {
  auto names = storage.names();
  if (!names) return names.status();
  std::optional<Superblock> found;
  for (const std::string& name : *names) {
    if (!name.starts_with("log.")) continue;
    auto file = storage.open(name, OpenHow::kRead);
    if (!file) return file.status();
    std::array<std::byte, kSegmentBegin> image{};
    const std::int64_t got = (*file)->read(image, 0);
    const std::int64_t size = (*file)->size();
    if (got < 0 || size < 0) return Status::from_errno(EIO, storage.where() + "/" + name);
    const auto log = decode_log_name(Bytes(image).first(static_cast<std::size_t>(got)));
    if (!log) continue;
    Superblock named;
    named.uuid[0] = log->uuid[0];
    named.uuid[1] = log->uuid[1];
    named.created_ns = log->created_ns;
    named.segment_bytes = static_cast<std::uint64_t>(size);
    if (found && (found->uuid[0] != named.uuid[0] || found->uuid[1] != named.uuid[1] ||
                  found->segment_bytes != named.segment_bytes)) {
      return std::optional<Superblock>();
    }
    found = named;
  }
  const bool is_possible = found && found->segment_bytes >= kSegmentBytesMin &&
                           found->segment_bytes <= kSegmentBytesMax &&
                           found->segment_bytes % 4096 == 0;
  return is_possible ? found : std::optional<Superblock>();
}

Result<OpenSuperblock> find_superblock(LogStorage& storage, CheckWhat what, CheckReport& report) {
  auto superblock = open_superblock(storage, SuperblockLock::kTaken);
  if (superblock) return superblock;
  const StatusCode code = superblock.status().code();
  if (code != StatusCode::kNotFound && code != StatusCode::kInvalid) return superblock.status();
  auto named = superblock_of_segments(storage);
  if (!named) return named.status();
  if (!*named) return superblock.status();
  const std::string problem =
      code == StatusCode::kNotFound ? "the superblock is missing" : "the superblock is damaged";
  if (what == CheckWhat::kLook) {
    report.problems.push_back(problem + "; the segments agree on what it was");
    return OpenSuperblock{**named, nullptr};
  }
  CAIRN_RETURN_IF_ERROR(write_superblock(storage, **named));
  report.repaired.push_back(problem + "; made again from the segments");
  return open_superblock(storage, SuperblockLock::kTaken);
}

// Zeros from where the last record that counts ends. Nothing there was ever acknowledged.
Status clear_behind(LogSegment& segment, std::uint64_t end) {
  const std::int64_t size = segment.file->size();
  if (size < 0) return Status::from_errno(static_cast<int>(-size), segment.name);
  const std::vector<std::byte> zeros(std::size_t{1} << 20);
  for (std::uint64_t at = end; at < static_cast<std::uint64_t>(size);) {
    const std::size_t bytes =
        std::min<std::uint64_t>(zeros.size(), static_cast<std::uint64_t>(size) - at);
    const int error = segment.file->write(Bytes(zeros).first(bytes), at);
    if (error != 0) return Status::from_errno(-error, segment.name);
    at += bytes;
  }
  const int error = segment.file->flush();
  return error == 0 ? Status::ok() : Status::from_errno(-error, segment.name);
}

}  // namespace

Result<CheckReport> check_log(LogStorage& storage, CheckWhat what) {
  CheckReport report;
  auto superblock = find_superblock(storage, what, report);
  if (!superblock) return superblock.status();
  auto scan = LogScan::open(storage, superblock->content);
  if (!scan) return scan.status();
  report.segments = scan->segments().size();
  report.spare = scan->spare().size();
  std::map<std::string, std::uint64_t> ends;
  auto scanned =
      scan->run(Payloads::kVerified, [&](const FoundRecord& record, const LogSegment& segment) {
        ends[segment.name] =
            record.payload_at - kRecordHeaderBytes + record_bytes(record.header.payload_bytes);
      });
  if (!scanned) return scanned.status();
  report.scan = std::move(*scanned);
  for (const Damage& damage : report.scan.damage) {
    report.problems.push_back("records " + std::to_string(raw(damage.first)) + " to " +
                              std::to_string(raw(damage.last)) + " were durable and are damaged (" +
                              damage.segment + ")");
  }
  if (!report.scan.is_torn) return report;
  const std::string torn =
      "the end is torn, " + std::to_string(report.scan.torn) + " records behind it do not count";
  // A record behind the end may be the only one that says that those behind the damage are durable.
  const bool is_needed = !report.scan.damage.empty();
  if (what == CheckWhat::kLook || is_needed) {
    report.problems.push_back(torn + (is_needed ? "; left as it is because of the damage" : ""));
    return report;
  }
  for (LogSegment& segment : scan->segments()) {
    const auto end = ends.find(segment.name);
    const std::uint64_t from = end == ends.end() ? kSegmentBegin : end->second;
    CAIRN_RETURN_IF_ERROR(clear_behind(segment, from));
  }
  report.repaired.push_back(torn + "; cleared");
  return report;
}

}  // namespace cairn::durable
