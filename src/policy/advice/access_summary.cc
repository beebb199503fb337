// SPDX-License-Identifier: Apache-2.0
#include "policy/advice/access_summary.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::advice {
namespace {

constexpr double kNsPerSecond = 1e9;

// A stream of one process and a file make one number; which one does not matter.
std::uint64_t key_of(const Access& access) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
  return (access.stream + 1) * kGolden ^ (std::uint64_t{access.file} << 1 | access.is_write);
}

constexpr unsigned kFileBits = 40;

std::uint64_t block_key(std::uint32_t file, std::uint64_t block) {
  return (std::uint64_t{file} << kFileBits) ^ block;
}

std::size_t place_of(std::uint64_t key, std::size_t places) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
  return static_cast<std::size_t>((key * kGolden) >> 32) % places;
}

std::uint64_t bytes_in_block(const Access& access, std::uint64_t block) {
  const std::uint64_t begin = std::max(access.offset, block * kBlockBytes);
  const std::uint64_t end = std::min(access.offset + access.length, (block + 1) * kBlockBytes);
  return end > begin ? end - begin : 0;
}

}  // namespace

SummaryBuilder::SummaryBuilder() { counts_.written.bytes.assign(WriteTimes::kParts, 0); }

void SummaryBuilder::merge_parts() {
  WriteTimes& times = counts_.written;
  CAIRN_DCHECK(times.bytes.size() == WriteTimes::kParts);
  for (std::size_t part = 0; part < WriteTimes::kParts / 2; ++part)
    times.bytes[part] = times.bytes[2 * part] + times.bytes[2 * part + 1];
  std::fill(times.bytes.begin() + WriteTimes::kParts / 2, times.bytes.end(), 0.0);
  times.part_seconds *= 2;
}

void SummaryBuilder::note_time(const Access& access) {
  if (accesses_ == 0) first_ns_ = access.time_ns;
  if (access.time_ns > last_ns_ && accesses_ > 0) {
    const double pause = static_cast<double>(access.time_ns - last_ns_) / kNsPerSecond;
    counts_.long_pause_seconds += std::max(0.0, pause - kPauseSeconds);
  }
  last_ns_ = std::max(last_ns_, access.time_ns);
  if (!access.is_write) {
    if (!first_read_ns_) first_read_ns_ = access.time_ns;
    last_read_ns_ = std::max(last_read_ns_, access.time_ns);
    return;
  }
  const std::uint64_t since = access.time_ns > first_ns_ ? access.time_ns - first_ns_ : 0;
  const double seconds = static_cast<double>(since) / kNsPerSecond;
  WriteTimes& times = counts_.written;
  while (seconds >= times.part_seconds * WriteTimes::kParts) merge_parts();
  times.bytes[static_cast<std::size_t>(seconds / times.part_seconds)] += access.length;
}

SummaryBuilder::Stream& SummaryBuilder::note(const Access& access) {
  note_time(access);
  UseCounts& counts = access.is_write ? counts_.writes : counts_.reads;
  counts.requests += 1;
  counts.request_bytes += access.length;
  const auto* const limit = std::upper_bound(AccessSummary::kSizeLimits.begin(),
                                             AccessSummary::kSizeLimits.end(), access.length);
  counts_.requests_by_size[static_cast<std::size_t>(limit - AccessSummary::kSizeLimits.begin())] +=
      1;
  if (access.file >= known_files_.size()) known_files_.resize(std::size_t{access.file} + 1);
  File& file = known_files_[access.file];
  if (file.end == 0 && access.is_write && access.offset == 0) counts_.new_files += 1;
  file.end = std::max(file.end, access.offset + access.length);
  const std::uint64_t window = accesses_++ / kWindow + 1;
  std::uint64_t& last = last_windows_[access.process];
  if (last != window) ++processes_in_windows_;
  last = window;
  Stream& stream = streams_[key_of(access)];
  const std::uint64_t first = access.offset / kBlockBytes;
  stream.goes_on = stream.block != kNoBlock && (first == stream.block || first == stream.block + 1);
  return stream;
}

bool SummaryBuilder::note_part(Stream& stream, const Access& access, std::uint64_t block) {
  constexpr std::uint64_t kPage = kBlockBytes / 16;
  const std::uint64_t first = std::max(access.offset, block * kBlockBytes) - block * kBlockBytes;
  const std::uint64_t end = first + std::max<std::uint64_t>(bytes_in_block(access, block), 1);
  CAIRN_DCHECK(end <= kBlockBytes);
  const auto below = [](std::uint64_t page) { return (std::uint32_t{1} << page) - 1; };
  const std::uint32_t pages = below((end + kPage - 1) / kPage) & ~below(first / kPage);
  const bool is_repeat = (pages & ~std::uint32_t{stream.pages}) == 0 && first < stream.end;
  stream.pages = static_cast<std::uint16_t>(stream.pages | pages);
  stream.end = static_cast<std::uint32_t>(end);
  return is_repeat;
}

bool SummaryBuilder::was_just_used(std::uint32_t file, std::uint64_t block) const {
  const std::uint64_t key = block_key(file, block);
  const Used& used = used_[place_of(key, used_.size())];
  return used.key == key && accesses_ - used.access <= kWindow;
}

void SummaryBuilder::note_used(std::uint32_t file, std::uint64_t block) {
  const std::uint64_t key = block_key(file, block);
  used_[place_of(key, used_.size())] = {key, accesses_};
}

void SummaryBuilder::add_bytes(const Stream& stream, std::uint64_t bytes, UseCounts* counts) {
  CAIRN_DCHECK(stream.is_sequential || !stream.is_foreseen);
  const auto number = static_cast<double>(bytes);
  (stream.is_sequential ? counts->sequential_bytes : counts->random_bytes) += number;
  if (stream.is_foreseen) counts->foreseen_bytes += number;
}

// A block behind the first one of a request that nobody has foreseen.
void SummaryBuilder::note_following(const Access& access, std::uint64_t block, UseCounts* counts) {
  constexpr std::uint64_t kJoinedBlocks = kJoinedBytes / kBlockBytes;
  const std::uint64_t before = block - access.offset / kBlockBytes;
  CAIRN_DCHECK(before > 0);
  if (before == 1) counts->split_requests += 1;
  if (before % kJoinedBlocks == 0) counts->further_requests += 1;
}

bool SummaryBuilder::add_part(Stream& stream, const Access& access, std::uint64_t block) {
  UseCounts& counts = access.is_write ? counts_.writes : counts_.reads;
  const std::uint64_t bytes = bytes_in_block(access, block);
  const bool follows = stream.block != kNoBlock && block == stream.block + 1;
  CAIRN_DCHECK(stream.counted <= kBlockBytes);
  if (block == stream.block) {
    const std::uint64_t more = std::min(bytes, kBlockBytes - stream.counted);
    add_bytes(stream, more, &counts);
    stream.counted += more;
    if (note_part(stream, access, block)) counts.repeats += 1;
    return false;
  }
  // What lies between was read as well, though the record has not every hit within a block.
  if (follows && !access.is_write) add_bytes(stream, kBlockBytes - stream.counted, &counts);
  stream.block = block;
  stream.counted = bytes;
  stream.pages = 0;
  (void)note_part(stream, access, block);
  stream.is_sequential = follows;
  stream.is_foreseen = follows && stream.goes_on;
  (follows ? counts.sequential_uses : counts.random_uses) += 1;
  if (stream.is_foreseen) counts.foreseen_uses += 1;
  if (follows && !stream.is_foreseen) note_following(access, block, &counts);
  add_bytes(stream, bytes, &counts);
  if (!access.is_write && access.was_hit) counts_.recorded_hits += 1;
  if (!follows && block > 0 && was_just_used(access.file, block - 1)) counts.adjoining_uses += 1;
  note_used(access.file, block);
  if (!follows) {
    File& file = known_files_[access.file];
    ++(access.is_write ? file.random_writes : file.random_reads);
  }
  return true;
}

AccessSummary SummaryBuilder::summary() const {
  AccessSummary summary = counts_;
  summary.seconds = static_cast<double>(last_ns_ - std::min(first_ns_, last_ns_)) / kNsPerSecond;
  if (first_read_ns_ && summary.seconds > 0)
    summary.read_share =
        static_cast<double>(last_read_ns_ - *first_read_ns_) / kNsPerSecond / summary.seconds;
  CAIRN_DCHECK(summary.read_share >= 0);
  for (const File& file : known_files_) {
    if (file.end == 0) continue;
    ++summary.files;
    const auto block_bytes = static_cast<double>(std::min(file.end, kBlockBytes));
    summary.reads.random_block_bytes += static_cast<double>(file.random_reads) * block_bytes;
    summary.writes.random_block_bytes += static_cast<double>(file.random_writes) * block_bytes;
  }
  const std::uint64_t windows = (accesses_ + kWindow - 1) / kWindow;
  if (windows > 0)
    summary.concurrency =
        std::max(1.0, static_cast<double>(processes_in_windows_) / static_cast<double>(windows));
  CAIRN_CHECK(summary.concurrency >= 1);
  return summary;
}

}  // namespace cairn::advice
