// SPDX-License-Identifier: Apache-2.0
#include "policy/heat/heat_file.h"

#include <dirent.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "base/kept_file.h"

namespace cairn {
namespace {

constexpr std::string_view kSuffix = ".heat";

// The part behind the magic and the version, which fix it.
struct HeatHeader {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t birth_ns = 0;
  std::uint64_t file_bytes = 0;
  double log_base = 0;
  double step_ns = 0;
  std::int64_t closed_ns = 0;
  std::uint32_t epochs = 0;
  std::uint32_t segment_shift = 0;
  std::uint32_t segment_count = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(HeatHeader) == 72);
static_assert(sizeof(HeatScore::Run) == 24, "runs are stored as they are");
constexpr KeptKind kKind{.noun = "heat map",
                         .magic = "CAIRNHEA",
                         .version = 1,
                         .value_min = sizeof(HeatHeader),
                         .bytes_max = kHeatFileBytesMax};
static_assert(kKind.magic.size() + 4 + sizeof(HeatHeader) + 8 +
                  FileHeat::kSegmentsMax * (1 + HeatScore::kRunsMax * sizeof(HeatScore::Run) + 4) <=
              kHeatFileBytesMax);

Status invalid(const char* what) { return {StatusCode::kInvalid, what}; }
Status incompatible(std::string what) { return {StatusCode::kIncompatible, std::move(what)}; }

// Nothing when these bytes are no score.
std::optional<HeatScore> take_score(KeptReader* reader) {
  const auto count = reader->take<std::uint8_t>();
  if (count > HeatScore::kRunsMax) return std::nullopt;
  std::array<HeatScore::Run, HeatScore::kRunsMax> runs;
  for (std::uint8_t at = 0; at < count; ++at) runs[at] = reader->take<HeatScore::Run>();
  const auto references = count > 0 ? reader->take<std::uint32_t>() : 0;
  HeatScore score;
  if (reader->is_short() || !score.restore({runs.data(), count}, references)) return std::nullopt;
  return score;
}

Result<FileHeat::State> take_state(KeptReader* reader, const HeatHeader& header) {
  FileHeat::State state;
  state.pace = {{header.log_base}, header.step_ns};
  state.file_bytes = header.file_bytes;
  state.closed_ns = header.closed_ns;
  state.epochs = header.epochs;
  state.segment_shift = header.segment_shift;
  state.scores.reserve(header.segment_count);
  for (std::uint32_t at = 0; at < header.segment_count; ++at) {
    auto score = take_score(reader);
    if (!score) return invalid("has a score that cannot be one");
    state.scores.push_back(*score);
  }
  if (!reader->is_at_end()) return invalid("is longer than it says");
  return state;
}

}  // namespace

std::string encode_heat(const ObjectKey& key, const FileHeat::State& state) {
  HeatHeader header;
  header.device = raw(key.store);
  header.inode = key.id.inode;
  header.birth_ns = key.id.birth_ns;
  header.file_bytes = state.file_bytes;
  header.log_base = state.pace.decay.log_base;
  header.step_ns = state.pace.step_ns;
  header.closed_ns = state.closed_ns;
  header.epochs = state.epochs;
  header.segment_shift = state.segment_shift;
  header.segment_count = static_cast<std::uint32_t>(state.scores.size());
  std::string bytes;
  append_bytes(&bytes, header);
  for (const HeatScore& score : state.scores) {
    append_bytes(&bytes, static_cast<std::uint8_t>(score.runs().size()));
    for (const HeatScore::Run& run : score.runs()) append_bytes(&bytes, run);
    if (!score.is_cold()) append_bytes(&bytes, score.references());
  }
  return seal(kKind, bytes);
}

Result<FileHeat::State> decode_heat(std::string_view bytes, const ObjectKey& key,
                                    const HeatPace& pace) {
  const auto value = unseal(kKind, bytes);
  if (!value) return value.status();
  KeptReader reader(*value);
  const auto header = reader.take<HeatHeader>();
  if (!(file_key(header.device, header.inode, header.birth_ns) == key))
    return incompatible("is the map of another file");
  if (!(HeatPace{{header.log_base}, header.step_ns} == pace))
    return incompatible("was made where scores fade differently");
  if (header.segment_count > FileHeat::kSegmentsMax ||
      header.segment_shift > FileHeat::kSegmentShiftMax || header.file_bytes > kOffsetMax) {
    return invalid("has more segments than a map can have");
  }
  return take_state(&reader, header);
}

std::string heat_file_name(const ObjectKey& key) {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "%08llx-%016llx-%016llx%s",
                static_cast<unsigned long long>(raw(key.store)),
                static_cast<unsigned long long>(key.id.inode),
                static_cast<unsigned long long>(key.id.birth_ns), kSuffix.data());
  return name.data();
}

Status save_heat(const std::string& path, const ObjectKey& key, const FileHeat::State& state) {
  return save_kept(path, encode_heat(key, state));
}

Result<FileHeat::State> load_heat(const std::string& path, const ObjectKey& key,
                                  const HeatPace& pace) {
  const auto bytes = load_kept(kKind, path);
  if (!bytes) return bytes.status();
  auto state = decode_heat(*bytes, key, pace);
  if (state) return state;
  return Status(state.status().code(), path + ": " + state.status().message());
}

Result<std::size_t> remove_heat_files(const std::string& directory) {
  DIR* const listing = ::opendir(directory.c_str());
  if (listing == nullptr) {
    if (errno == ENOENT) return std::size_t{0};
    return Status::from_errno(errno, directory);
  }
  std::size_t count = 0;
  Status first_error;
  while (const dirent* entry = ::readdir(listing)) {
    std::string_view name = entry->d_name;
    if (name.ends_with(kKeptBeside)) name.remove_suffix(kKeptBeside.size());
    if (!name.ends_with(kSuffix)) continue;
    if (::unlinkat(::dirfd(listing), entry->d_name, 0) == 0) {
      ++count;
    } else if (first_error) {
      first_error = Status::from_errno(errno, directory + "/" + entry->d_name);
    }
  }
  ::closedir(listing);
  if (!first_error) return first_error;
  return count;
}

}  // namespace cairn
