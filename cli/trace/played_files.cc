// SPDX-License-Identifier: Apache-2.0
#include "cli/trace/played_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/size_text.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "service/trace/trace_format.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMakeRemedy =
    "`cairn trace replay --make` with the same options makes the files that a trace reads";

// Is read by nobody unless it was written: not so when nothing of the trace writes the file.
bool must_exist(const PlayedFile& file) { return file.bytes_needed > 0 || !file.is_written; }

[[noreturn]] void fail_errno(const std::string& path, const char* what) {
  throw Failure(fmt::format("{}: {}: {}", printable(path), what, std::strerror(errno)),
                "the files of a replay lie where --files says; look at its rights and its room");
}

// A descriptor of an ordinary open(2).
class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) fail_errno(path_, "cannot be made");
  }
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  std::size_t read(std::uint64_t offset, std::span<char> target) const {
    const ssize_t count =
        ::pread(descriptor_, target.data(), target.size(), static_cast<off_t>(offset));
    if (count < 0) fail_errno(path_, "cannot be read");
    return static_cast<std::size_t>(count);
  }
  void write(std::uint64_t offset, std::span<const char> bytes) const {
    while (!bytes.empty()) {
      const ssize_t count =
          ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) fail_errno(path_, "cannot be written");
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    }
  }
  // Stores the file and drops it from the page cache, so that the next replay reads the device.
  void finish() {
    if (::fsync(descriptor_) != 0) fail_errno(path_, "cannot be stored");
    (void)::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
    if (::close(std::exchange(descriptor_, -1)) != 0) fail_errno(path_, "cannot be stored");
  }

 private:
  const std::string& path_;
  int descriptor_;
};

}  // namespace

PlayedContent::PlayedContent() : bytes_(kPeriod + kPartBytesMax) {
  std::uint64_t state = 77;
  for (std::size_t at = 0; at < kPeriod; ++at) {
    state = state * 6364136223846793005 + 1442695040888963407;  // (Knuth's MMIX; TAOCP 2, 3.3.4)
    bytes_[at] = static_cast<char>(state >> 56);
  }
  std::copy_n(bytes_.begin(), kPartBytesMax, bytes_.begin() + kPeriod);
}

std::uint64_t PlayedContent::start_of(const std::string& path) {
  return trace_checksum({reinterpret_cast<const std::uint8_t*>(path.data()), path.size()}) %
         kPeriod;
}

std::span<const char> PlayedContent::at(std::uint64_t start, std::uint64_t offset,
                                        std::size_t bytes) const {
  return std::span(bytes_).subspan((start + offset) % kPeriod, bytes);
}

void PlayedContent::fill(std::uint64_t start, std::uint64_t offset, std::span<char> target) const {
  while (!target.empty()) {
    const auto part = at(start, offset, std::min(target.size(), kPartBytesMax));
    std::memcpy(target.data(), part.data(), part.size());
    offset += part.size();
    target = target.subspan(part.size());
  }
}

std::size_t PlayedContent::mismatch(std::uint64_t start, std::uint64_t offset,
                                    std::span<const char> found) const {
  std::size_t done = 0;
  while (done < found.size()) {
    const auto part = at(start, offset + done, std::min(found.size() - done, kPartBytesMax));
    if (std::memcmp(part.data(), found.data() + done, part.size()) != 0) {
      const auto differs =
          std::mismatch(part.begin(), part.end(), found.begin() + static_cast<ptrdiff_t>(done));
      return done + static_cast<std::size_t>(differs.first - part.begin());
    }
    done += part.size();
  }
  return done;
}

std::string PlayedFiles::path_of(const PlayedFile& file) const {
  return directory_ + (directory_.ends_with('/') ? "" : "/") + file.path;
}

PlayedFiles::Existing PlayedFiles::look_at(const PlayedFile& file) const {
  const std::string path = path_of(file);
  std::error_code error;
  const fs::path root = fs::weakly_canonical(directory_, error);
  const fs::path place = fs::weakly_canonical(path, error);
  if (error ||
      std::mismatch(root.begin(), root.end(), place.begin(), place.end()).first != root.end()) {
    throw Failure(fmt::format("{}: a link leads out of {}", printable(path), printable(directory_)),
                  "a replay stays below --files: take a directory without such links");
  }
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    fail_errno(path, "cannot be looked at");
  }
  if (!S_ISREG(status.st_mode))
    throw Failure(fmt::format("{}: no regular file", printable(path)),
                  "traces are played on regular files: take another directory");
  return {true, static_cast<std::uint64_t>(status.st_size)};
}

void PlayedFiles::make_directory_of(const PlayedFile& file) const {
  const std::string parent = fs::path(path_of(file)).parent_path();
  std::error_code error;
  fs::create_directories(parent, error);
  if (!error) return;
  throw Failure(fmt::format("{}: cannot be made: {}", printable(parent), error.message()),
                "name another directory with --files");
}

void PlayedFiles::prepare(bool may_overwrite) const {
  for (const PlayedFile& file : plan_.files) {
    if (!file.is_used) continue;
    const std::string path = printable(path_of(file));
    const Existing existing = look_at(file);
    if (!existing.is_there && must_exist(file))
      throw Failure(fmt::format("{}: no such file", path), kMakeRemedy);
    if (existing.bytes < file.bytes_needed)
      throw Failure(fmt::format("{}: the file has {} bytes, and the trace reads it up to {}", path,
                                existing.bytes, file.bytes_needed),
                    kMakeRemedy);
    if (file.is_written && existing.bytes > 0 && !may_overwrite)
      throw Failure(fmt::format("{}: the trace writes to it, and there is something in it", path),
                    "say --verify if --make has made the file, --reads to play no writes, or "
                    "--overwrite if its content may be lost");
    if (!existing.is_there) make_directory_of(file);
  }
}

void PlayedFiles::require_room() const {
  std::uint64_t missing = 0;
  for (const PlayedFile& file : plan_.files) {
    if (!file.is_used) continue;
    const std::uint64_t bytes = look_at(file).bytes;
    if (bytes < file.bytes_needed) missing += file.bytes_needed - bytes;
  }
  std::error_code error;
  const fs::space_info space = fs::space(directory_, error);
  if (error || missing <= space.available) return;
  throw Failure(
      fmt::format("{}: the files of the trace need {} more, and there is room for {}",
                  printable(directory_), format_size(missing), format_size(space.available)),
      "make room, or play less of the trace with --first");
}

PlayedFiles::Made PlayedFiles::make() const {
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error)
    throw Failure(fmt::format("{}: cannot be made: {}", printable(directory_), error.message()),
                  "name another directory with --files");
  require_room();
  const PlayedContent content;
  Made made;
  for (const PlayedFile& file : plan_.files) {
    if (!file.is_used || !must_exist(file)) continue;
    make_directory_of(file);
    made.bytes += make_file(file, content);
    ++made.files;
  }
  return made;
}

std::uint64_t PlayedFiles::make_file(const PlayedFile& file, const PlayedContent& content) const {
  const std::string path = path_of(file);
  const std::uint64_t start = PlayedContent::start_of(file.path);
  const std::uint64_t existing = look_at(file).bytes;
  OpenFile made(path);
  // Its ends tell a file of this from others.
  constexpr std::uint64_t kEndBytes = 4096;
  std::vector<char> end(kEndBytes);
  for (const std::uint64_t offset : {std::uint64_t{0}, existing - std::min(existing, kEndBytes)}) {
    const auto found = std::span(end).first(
        made.read(offset, std::span(end).first(std::min(existing, kEndBytes))));
    if (content.mismatch(start, offset, found) != found.size())
      throw Failure(
          fmt::format("{}: the file is there already, and was not made by --make", printable(path)),
          "name another directory with --files, or remove the file");
  }
  for (std::uint64_t at = existing; at < file.bytes_needed;) {
    const auto part = content.at(
        start, at, std::min<std::uint64_t>(file.bytes_needed - at, PlayedContent::kPartBytesMax));
    made.write(at, part);
    at += part.size();
  }
  made.finish();
  return file.bytes_needed - std::min(existing, file.bytes_needed);
}

}  // namespace cairn::cli
