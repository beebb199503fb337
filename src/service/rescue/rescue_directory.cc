// SPDX-License-Identifier: Apache-2.0
#include "service/rescue/rescue_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/private_file.h"
#include "base/rescue_list.h"
#include "base/state_directory.h"

namespace cairn::node {
namespace {

constexpr unsigned kNamesMax = 100;

std::string timestamp() {
  const time_t now = ::time(nullptr);
  tm parts{};
  ::localtime_r(&now, &parts);
  char text[32];
  ::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts);
  return text;
}

int write_fully(int fd, const std::byte* bytes, std::size_t length, std::uint64_t offset) {
  while (length > 0) {
    const ssize_t put = ::pwrite(fd, bytes, length, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return put == 0 ? EIO : errno;
    bytes += put;
    offset += static_cast<std::uint64_t>(put);
    length -= static_cast<std::size_t>(put);
  }
  return 0;
}

bool sync_directory(const std::string& path) {
  const UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return directory && ::fsync(directory.get()) == 0;
}

// A block of a file tier is read by whole pages into memory that is aligned to them.
class PageBuffer {
 public:
  PageBuffer() : bytes_(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kBlockBytes))) {}
  ~PageBuffer() { std::free(bytes_); }
  PageBuffer(const PageBuffer&) = delete;
  PageBuffer& operator=(const PageBuffer&) = delete;
  std::byte* bytes() const { return bytes_; }

 private:
  std::byte* bytes_;
};

}  // namespace

std::vector<std::string> rescue_places(const std::string& node_directory) {
  std::vector<std::string> places;
  if (const std::string state = state_directory(); !state.empty())
    places.push_back(state + "/rescue");
  places.push_back("/var/tmp/cairn-rescue-" + std::to_string(::geteuid()));
  places.push_back(node_directory + "/rescue");
  return places;
}

RescueDirectory::RescueDirectory(const NodeMemory& memory, std::string node,
                                 std::vector<std::string> places)
    : memory_(memory), node_(std::move(node)), places_(std::move(places)) {
  CAIRN_CHECK(!places_.empty());
}

// Somebody else may have made a directory of that name in /var/tmp.
bool RescueDirectory::make_in(const std::string& place) {
  if (make_directories(place.substr(0, place.rfind('/'))) != 0) return false;
  if (::mkdir(place.c_str(), 0700) != 0 && errno != EEXIST) return false;
  struct stat status{};
  const bool is_own = ::lstat(place.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
                      status.st_uid == ::geteuid() && (status.st_mode & 077) == 0;
  if (!is_own) return false;
  const std::string name = place + "/" + node_ + "-" + timestamp();
  std::string path = name;
  for (unsigned suffix = 2; ::mkdir(path.c_str(), 0700) != 0; ++suffix) {
    if (errno != EEXIST || suffix > kNamesMax) return false;
    path = name + "-" + std::to_string(suffix);
  }
  list_.reset(open_new_file((path + "/" + kRescueListName).c_str(), 0600));
  const std::string head = rescue_list_head();
  if (!list_ ||
      ::write(list_.get(), head.data(), head.size()) != static_cast<ssize_t>(head.size())) {
    list_.reset();
    ::unlink((path + "/" + kRescueListName).c_str());
    ::rmdir(path.c_str());
    return false;
  }
  path_ = path;
  return true;
}

bool RescueDirectory::open() {
  if (list_) return true;
  return std::any_of(places_.begin(), places_.end(),
                     [this](const std::string& place) { return make_in(place); });
}

RescueDirectory::Range RescueDirectory::write_range(BucketIndex bucket, std::uint64_t offset,
                                                    std::uint64_t length, int fd) {
  Range range{offset, length, 0};
  const std::size_t begin = offset & (kBlockBytes - 1);
  if (begin + length > memory_.bucket_bytes(bucket)) {
    range.error = EFAULT;  // a damaged descriptor
    return range;
  }
  // No more than these pages: of others the tier may have lost some.
  const std::size_t first = begin / kPageBytes * kPageBytes;
  const std::size_t past = (begin + length + kPageBytes - 1) / kPageBytes * kPageBytes;
  const TierPlace place = memory_.place_of(bucket, first, past - first);
  const std::byte* bytes = place.address();
  PageBuffer buffer;
  if (bytes == nullptr) {
    if (buffer.bytes() == nullptr) range.error = ENOMEM;
    if (range.error == 0) range.error = -place.read(buffer.bytes());
    bytes = buffer.bytes();
  }
  if (range.error == 0) range.error = write_fully(fd, bytes + (begin - first), length, offset);
  return range;
}

// By the buckets, which are believed more than the directory: a rescue may come before anybody has
// mended that.
std::vector<RescueDirectory::Range> RescueDirectory::write_pages(const SavedSource& source,
                                                                 int fd) {
  std::vector<Range> ranges;
  const std::uint64_t size = memory_.objects().at(source.object).size.load();
  for (std::uint32_t number = 1; number < memory_.bucket_count(); ++number) {
    const auto bucket = static_cast<BucketIndex>(number);
    const BlockDescriptor& block = memory_.block(bucket);
    const std::uint16_t dirty = block.dirty_pages();
    if (block.object_index() != source.object || dirty == 0) continue;
    const std::uint64_t start = offset_of(block.block_number());
    for (unsigned page = 0; page < kPagesPerBlock; ++page) {
      if ((dirty >> page & 1) == 0) continue;
      const std::uint64_t offset = start + page * kPageBytes;
      if (offset >= size) break;
      const std::uint64_t length = std::min<std::uint64_t>(kPageBytes, size - offset);
      ranges.push_back(write_range(bucket, offset, length, fd));
    }
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& left, const Range& right) { return left.offset < right.offset; });
  std::vector<Range> merged;
  for (const Range& range : ranges) {
    const bool follows = !merged.empty() && merged.back().error == range.error &&
                         merged.back().offset + merged.back().length == range.offset;
    if (follows) {
      merged.back().length += range.length;
    } else {
      merged.push_back(range);
    }
  }
  // Size and time alone are missing in the store.
  if (merged.empty()) merged.emplace_back();
  return merged;
}

void RescueDirectory::list(const SavedSource& source, const std::string& name,
                           const std::vector<Range>& ranges) {
  const Object& object = memory_.objects().at(source.object);
  struct stat stored{};
  const bool is_known = ::stat(source.path.c_str(), &stored) == 0 && stored.st_ino == object.inode;
  std::string text;
  for (const Range& range : ranges) {
    RescueEntry entry;
    entry.path = source.path;
    entry.device = raw(object.store());
    entry.inode = object.inode;
    entry.size = object.size.load();
    entry.mtime_ns = object.mtime_ns.load();
    if (is_known)
      entry.stored_ns =
          stored.st_mtim.tv_sec * std::int64_t{1'000'000'000} + stored.st_mtim.tv_nsec;
    entry.offset = range.offset;
    entry.length = range.length;
    entry.saved = range.error == 0 ? name : "";
    entry.why = range.error == 0 ? source.why
                                 : source.why + "; could not be saved: " + ::strerror(range.error);
    text += rescue_line(entry);
    (range.error == 0 ? saved_bytes_ : lost_bytes_) += range.length;
  }
  const auto length = static_cast<ssize_t>(text.size());
  const off_t end = list_ ? ::lseek(list_.get(), 0, SEEK_END) : -1;
  if (list_ && ::write(list_.get(), text.data(), text.size()) == length) return;
  is_durable_ = false;
  // Half a line would spoil that of the next file.
  if (end >= 0) (void)!::ftruncate(list_.get(), end);
}

bool RescueDirectory::save(const SavedSource& source) {
  CAIRN_CHECK(memory_.objects().is_index(source.object));
  CAIRN_CHECK(!listed_.contains(source.object));
  listed_.insert(source.object);
  if (!open()) {
    list(source, "", write_pages(source, -1));
    return false;
  }
  const std::string name = std::to_string(listed_.size());
  const UniqueFd saved(open_new_file((path_ + "/" + name).c_str(), 0600));
  const std::vector<Range> ranges = write_pages(source, saved.get());
  if (saved && ::fsync(saved.get()) != 0) is_durable_ = false;
  list(source, name, ranges);
  return std::all_of(ranges.begin(), ranges.end(),
                     [](const Range& range) { return range.error == 0; });
}

void RescueDirectory::list_unreadable(const SavedSource& source) { list_whole(source, EFAULT); }

void RescueDirectory::list_lost(const SavedSource& source) { list_whole(source, EIO); }

void RescueDirectory::list_whole(const SavedSource& source, int error) {
  listed_.insert(source.object);
  (void)open();
  list(source, "", {Range{0, memory_.objects().at(source.object).size.load(), error}});
}

bool RescueDirectory::finish() {
  if (!list_) return path_.empty() && is_durable_;
  if (::fsync(list_.get()) != 0) is_durable_ = false;
  std::string place = path_.substr(0, path_.rfind('/'));
  if (!sync_directory(path_) || !sync_directory(place)) is_durable_ = false;
  // It may have been made with those above it, some of which are nobody's to open.
  while (place.rfind('/') != 0 && place.rfind('/') != std::string::npos) {
    place.resize(place.rfind('/'));
    (void)sync_directory(place);
  }
  return is_durable_;
}

}  // namespace cairn::node
