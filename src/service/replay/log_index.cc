// SPDX-License-Identifier: Apache-2.0
#include "service/replay/log_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/ids.h"

namespace cairn::durable {

namespace {

// Takes the range out of the extents, so that it can be put in anew.
void cut_out(std::map<std::uint64_t, Extent>& extents, std::uint64_t begin, std::uint64_t end) {
  CAIRN_CHECK(begin <= end);
  auto place = extents.upper_bound(begin);
  if (place != extents.begin()) --place;
  while (place != extents.end() && place->first < end) {
    const std::uint64_t first = place->first;
    const Extent old = place->second;
    CAIRN_CHECK(first < old.end);
    if (old.end <= begin) {
      ++place;
      continue;
    }
    place = extents.erase(place);
    if (first < begin) extents[first] = {begin, old.record, old.skip};
    if (old.end > end) {
      extents[end] = {old.end, old.record, old.skip + (end - first)};
    }
  }
}

}  // namespace

std::uint64_t PendingFile::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [begin, extent] : extents) sum += extent.end - begin;
  return sum;
}

bool PendingFile::is_complete() const { return store.size == 0 || cut_to == 0; }

void LogIndex::add(const FoundRecord& record, const LogSegment& segment) {
  const RecordHeader& header = record.header;
  if (header.kind == RecordKind::kObject) {
    const auto statement = decode_object(header, record.payload);
    if (!statement) return;
    PendingFile& file = files_[raw(header.object)];
    file.object = header.object;
    file.identity = statement->identity;
    file.store = statement->store;
    file.window = statement->window;
    file.sizes.insert(statement->store.size);
    file.times.insert(statement->store.mtime_ns);
    state_path(file, header.lsn);
    return;
  }
  const auto found = files_.find(raw(header.object));
  if (found == files_.end()) return;
  PendingFile& file = found->second;
  if (makes_live(header.kind)) file.is_removed = false;
  switch (header.kind) {
    case RecordKind::kData:
      // An fsync of it would tell of the renaming, too.
      if (file.was_renamed) state_path(file, header.lsn);
      add_data(file, record, segment);
      break;
    case RecordKind::kSize:
      set_state(file, header);
      break;
    case RecordKind::kRenamed:
      if (record.payload.size() > kPathBytesMax) break;
      if (header.words[2] != 0 && header.words[2] != boot_) file.former_path = file.identity.path;
      file.was_renamed = true;
      file.renamed_by = header.lsn;
      file.identity.path.assign(reinterpret_cast<const char*>(record.payload.data()),
                                record.payload.size());
      if (!file.is_pending()) break;
      file.last = header.lsn;
      break;
    case RecordKind::kNames:
      if (auto changes = decode_names(record.payload))
        names_[raw(header.object)].push_back({header.lsn, header.words[1], std::move(*changes)});
      break;
    case RecordKind::kRemoved:
      // A log of before says no boot mark: what it had of the file was void at once.
      file.is_removed = true;
      file.removed_in = header.words[2];
      if (file.removed_in == 0) files_.erase(found);
      break;
    case RecordKind::kStoring:
      file.window = {static_cast<std::int64_t>(header.words[1]), header.words[2]};
      break;
    case RecordKind::kStored:
      stored(file, header);
      break;
    default:
      break;
  }
}

void LogIndex::state_path(PendingFile& file, Lsn lsn) {
  file.was_renamed = false;
  stated_[file.identity.path] = {raw(file.object), lsn};
}

// The one that came to its name may have been quicker than the word of its removal, but not than
// its own renaming to there. A file is stated again where a segment has the first of its records.
void LogIndex::supersede(PendingFile& file) const {
  if (!file.is_removed || file.removed_in == boot_) return;
  const auto stated = stated_.find(file.identity.path);
  if (stated == stated_.end() || stated->second.by <= file.renamed_by) return;
  const auto by = files_.find(stated->second.object);
  if (by == files_.end()) return;
  const FileIdentity& other = by->second.identity;
  if (other.key != file.identity.key && other.path == file.identity.path)
    file.superseded_by = by->second.object;
}

void LogIndex::set_state(PendingFile& file, const RecordHeader& header) {
  const FileState state{header.words[1], static_cast<std::int64_t>(header.words[2])};
  if (header.kind == RecordKind::kSize) {
    cut_out(file.extents, state.size, std::max(state.size, kOffsetMax));
    if (state.size < file.cut_to) {
      const std::uint64_t known = file.is_pending() ? file.state.size : file.store.size;
      if (state.size < known) file.cut_to = state.size;
      if (state.size < known) file.cut_by = header.lsn;
    }
  }
  file.state = state;
  file.last = header.lsn;
  file.sizes.insert(state.size);
  file.times.insert(state.mtime_ns);
}

void LogIndex::add_data(PendingFile& file, const FoundRecord& record, const LogSegment& segment) {
  const RecordHeader& header = record.header;
  const std::uint64_t begin = header.words[0];
  const std::uint64_t end = begin + header.payload_bytes;
  set_state(file, header);
  // Offsets of a file end well below this; anything else was written by no node.
  if (begin >= kOffsetMax || end > kOffsetMax || begin == end) return;
  file.records.push_back({segment.header.segment, record.payload_at, header.payload_bytes,
                          header.payload_sum, header.lsn});
  cut_out(file.extents, begin, end);
  file.extents[begin] = {end, file.records.size() - 1, 0};
}

void LogIndex::stored(PendingFile& file, const RecordHeader& header) {
  const Lsn upto = static_cast<Lsn>(header.words[0]);
  file.store = {header.words[1], static_cast<std::int64_t>(header.words[2])};
  if ((header.flags & kFlagStillStoring) == 0) {
    file.window = {};
    file.sizes.clear();
    file.times.clear();
    file.sizes.insert(file.state.size);
    file.times.insert(file.state.mtime_ns);
  }
  file.sizes.insert(file.store.size);
  file.times.insert(file.store.mtime_ns);
  std::erase_if(file.extents,
                [&](const auto& entry) { return file.records[entry.second.record].lsn <= upto; });
  if (file.cut_by <= upto) file.cut_to = ~std::uint64_t{0};
  if (file.extents.empty()) file.records.clear();
  if (file.last <= upto) file.last = Lsn::kNone;
  const auto named = names_.find(raw(header.object));
  if (named == names_.end()) return;
  std::erase_if(named->second, [upto](const auto& names) { return names.lsn <= upto; });
}

std::vector<LogIndex::Voided> LogIndex::void_stored(
    const std::function<bool(const ObjectKey&)>& is_it, Lsn upto) {
  std::vector<Voided> voided;
  for (auto& [number, file] : files_) {
    if (!file.is_pending() || !is_it(file.identity.key)) continue;
    const Lsn last = std::min(file.last, upto);
    RecordHeader word;
    word.kind = RecordKind::kStored;
    word.flags = kFlagStillStoring;  // as far as anybody knows
    word.object = file.object;
    word.words = {raw(last), file.store.size, static_cast<std::uint64_t>(file.store.mtime_ns)};
    stored(file, word);
    voided.push_back({file.object, last, file.store});
  }
  return voided;
}

std::vector<PendingDirectory> LogIndex::take_directories() {
  std::vector<PendingDirectory> pending;
  for (auto& [number, records] : names_) {
    const auto found = files_.find(number);
    if (records.empty() || found == files_.end()) continue;
    pending.push_back({static_cast<LogObject>(number), found->second.identity, std::move(records)});
  }
  names_.clear();
  return pending;
}

std::vector<PendingFile> LogIndex::take_pending() {
  for (auto& entry : files_) supersede(entry.second);
  std::vector<PendingFile> pending;
  for (auto& entry : files_) {
    if (entry.second.is_pending()) pending.push_back(std::move(entry.second));
  }
  files_.clear();
  return pending;
}

}  // namespace cairn::durable
