// SPDX-License-Identifier: Apache-2.0
#include "heat/heat_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>

namespace cairn {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "CAIRNHEA";
constexpr std::uint32_t kHeatVersion = 1;
constexpr std::string_view kSuffix = ".heat";
constexpr std::string_view kBeside = ".new";

// What follows the magic and the version. Fixed by them.
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
static_assert(kMagic.size() + 4 + sizeof(HeatHeader) + 8 +
                  FileHeat::kSegmentsMax * (1 + HeatScore::kRunsMax * sizeof(HeatScore::Run) + 4) <=
              kHeatFileBytesMax);

// Fowler, Noll, Vo: draft-eastlake-fnv, 64 bits, variant 1a.
std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t sum = 0xcbf29ce484222325ULL;
  for (const char byte : bytes) sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
  return sum;
}

template <typename T>
void append(std::string* bytes, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::array<char, sizeof(T)> raw_bytes;
  std::memcpy(raw_bytes.data(), &value, sizeof(T));
  bytes->append(raw_bytes.data(), raw_bytes.size());
}

// Takes values off the front; remembers when there was not enough.
class HeatReader {
 public:
  explicit HeatReader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (rest_.size() < sizeof(T)) {
      is_short_ = true;
      rest_ = {};
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  bool is_short() const { return is_short_; }
  bool is_at_end() const { return rest_.empty() && !is_short_; }

 private:
  std::string_view rest_;
  bool is_short_ = false;
};

Status invalid(const char* what) { return {StatusCode::kInvalid, what}; }
Status incompatible(std::string what) { return {StatusCode::kIncompatible, std::move(what)}; }

// Nothing when these bytes are no score.
std::optional<HeatScore> take_score(HeatReader* reader) {
  const auto count = reader->take<std::uint8_t>();
  if (count > HeatScore::kRunsMax) return std::nullopt;
  std::array<HeatScore::Run, HeatScore::kRunsMax> runs;
  for (std::uint8_t at = 0; at < count; ++at) runs[at] = reader->take<HeatScore::Run>();
  const auto references = count > 0 ? reader->take<std::uint32_t>() : 0;
  HeatScore score;
  if (reader->is_short() || !score.restore({runs.data(), count}, references)) return std::nullopt;
  return score;
}

Result<FileHeat::State> take_state(HeatReader* reader, const HeatHeader& header) {
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

int write_whole(const std::string& path, std::string_view bytes) {
  const int descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return errno;
  int error_number = 0;
  while (!bytes.empty() && error_number == 0) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      error_number = errno;
    }
  }
  if (::close(descriptor) != 0 && error_number == 0) error_number = errno;
  return error_number;
}

// At most one byte more than a map can have, so that what is too long is seen to be.
Result<std::string> read_whole(const std::string& path) {
  // Whatever else bears the name, opening it is not to wait for it.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return Status::from_errno(errno, path);
  std::string bytes(kHeatFileBytesMax + 1, '\0');
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = ::read(descriptor, bytes.data() + filled, bytes.size() - filled);
    if (count == 0) break;
    if (count > 0) {
      filled += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      const int error_number = errno;
      ::close(descriptor);
      return Status::from_errno(error_number, path);
    }
  }
  ::close(descriptor);
  bytes.resize(filled);
  return bytes;
}

}  // namespace

std::string encode_heat(const FileKey& key, const FileHeat::State& state) {
  std::string bytes(kMagic);
  append(&bytes, kHeatVersion);
  HeatHeader header;
  header.device = key.device;
  header.inode = key.inode;
  header.birth_ns = key.birth_ns;
  header.file_bytes = state.file_bytes;
  header.log_base = state.pace.decay.log_base;
  header.step_ns = state.pace.step_ns;
  header.closed_ns = state.closed_ns;
  header.epochs = state.epochs;
  header.segment_shift = state.segment_shift;
  header.segment_count = static_cast<std::uint32_t>(state.scores.size());
  append(&bytes, header);
  for (const HeatScore& score : state.scores) {
    append(&bytes, static_cast<std::uint8_t>(score.runs().size()));
    for (const HeatScore::Run& run : score.runs()) append(&bytes, run);
    if (!score.is_cold()) append(&bytes, score.references());
  }
  append(&bytes, fnv1a(bytes));
  return bytes;
}

Result<FileHeat::State> decode_heat(std::string_view bytes, const FileKey& key,
                                    const HeatPace& pace) {
  if (bytes.size() > kHeatFileBytesMax) return invalid("is larger than any heat map");
  if (!bytes.starts_with(kMagic)) return invalid("is not a heat map");
  HeatReader whole(bytes.substr(kMagic.size()));
  // Before the sum: another version may be summed up in another way.
  const auto version = whole.take<std::uint32_t>();
  if (whole.is_short()) return invalid("is cut off");
  if (version != kHeatVersion) {
    return incompatible("has version " + std::to_string(version) + " where this Cairn writes " +
                        std::to_string(kHeatVersion));
  }
  const std::size_t head_bytes = kMagic.size() + sizeof(version);
  std::uint64_t sum = 0;
  if (bytes.size() < head_bytes + sizeof(HeatHeader) + sizeof(sum)) return invalid("is cut off");
  const std::string_view summed = bytes.substr(0, bytes.size() - sizeof(sum));
  std::memcpy(&sum, bytes.data() + summed.size(), sizeof(sum));
  if (sum != fnv1a(summed)) return invalid("is damaged: its sum is wrong");

  HeatReader reader(summed.substr(head_bytes));
  const auto header = reader.take<HeatHeader>();
  if (!(FileKey{header.device, header.inode, header.birth_ns} == key))
    return incompatible("is the map of another file");
  if (!(HeatPace{{header.log_base}, header.step_ns} == pace))
    return incompatible("was made where scores fade differently");
  if (header.segment_count > FileHeat::kSegmentsMax ||
      header.segment_shift > FileHeat::kSegmentShiftMax || header.file_bytes > kOffsetMax) {
    return invalid("has more segments than a map can have");
  }
  return take_state(&reader, header);
}

std::string heat_file_name(const FileKey& key) {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "%08llx-%016llx-%016llx%s",
                static_cast<unsigned long long>(key.device),
                static_cast<unsigned long long>(key.inode),
                static_cast<unsigned long long>(key.birth_ns), kSuffix.data());
  return name.data();
}

Status save_heat(const std::string& path, const FileKey& key, const FileHeat::State& state) {
  const std::string beside = path + std::string(kBeside);
  int error_number = write_whole(beside, encode_heat(key, state));
  if (error_number == 0 && ::rename(beside.c_str(), path.c_str()) != 0) error_number = errno;
  if (error_number == 0) return Status::ok();
  ::unlink(beside.c_str());
  return Status::from_errno(error_number, path);
}

Result<FileHeat::State> load_heat(const std::string& path, const FileKey& key,
                                  const HeatPace& pace) {
  const auto bytes = read_whole(path);
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
    if (name.ends_with(kBeside)) name.remove_suffix(kBeside.size());
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
