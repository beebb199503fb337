// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/superblock.h"

#include <sys/random.h>
#include <time.h>

#include <array>
#include <cerrno>
#include <cstring>

#define XXH_INLINE_ALL  // NOLINT(readability-identifier-naming): the library's name for it
#include <xxhash.h>

#include "base/check.h"

namespace cairn::durable {

namespace {

constexpr std::array<char, 8> kMagic = {'C', 'A', 'I', 'R', 'N', 'D', 'L', 'G'};

// The bytes of the file, in the order in which they stand there.
struct Image {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kLogVersion;
  std::uint32_t bytes = kSuperblockBytes;
  std::uint64_t uuid[2] = {};
  std::int64_t created_ns = 0;
  std::uint64_t segment_bytes = 0;
  std::uint64_t zero = 0;
  std::uint64_t sum = 0;
};
static_assert(sizeof(Image) == kSuperblockBytes);

std::uint64_t sum_of(const Image& image) {
  return XXH3_64bits(&image, sizeof image - sizeof image.sum);
}

bool is_possible(std::uint64_t segment_bytes) {
  return segment_bytes >= kSegmentBytesMin && segment_bytes <= kSegmentBytesMax &&
         segment_bytes % 4096 == 0;
}

Result<Superblock> decode(const std::string& where, const Image& image) {
  if (image.magic != kMagic) {
    return Status(StatusCode::kInvalid, where +
                                            ": the superblock is damaged; `cairn check --repair`"
                                            " makes a new one from the segments");
  }
  if (image.version < kLogVersionFirst || image.version > kLogVersion) {
    return Status(StatusCode::kIncompatible,
                  where + " was written by another version of Cairn (its format is " +
                      std::to_string(image.version) + ", this version's is " +
                      std::to_string(kLogVersion) +
                      "); run that version's `cairn recover` on it, then remove it");
  }
  if (image.sum != sum_of(image) || image.bytes != kSuperblockBytes || image.zero != 0 ||
      !is_possible(image.segment_bytes)) {
    return Status(StatusCode::kInvalid, where +
                                            ": the superblock is damaged; `cairn check --repair`"
                                            " makes a new one from the segments");
  }
  Superblock found;
  found.uuid[0] = image.uuid[0];
  found.uuid[1] = image.uuid[1];
  found.created_ns = image.created_ns;
  found.segment_bytes = image.segment_bytes;
  found.version = image.version;
  return found;
}

}  // namespace

Superblock new_superblock(std::uint64_t segment_bytes) {
  CAIRN_CHECK(is_possible(segment_bytes));
  Superblock made;
  made.segment_bytes = segment_bytes;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  made.created_ns = now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
  if (::getrandom(made.uuid, sizeof made.uuid, 0) != sizeof made.uuid) {
    made.uuid[0] = static_cast<std::uint64_t>(made.created_ns) * 0x9e3779b97f4a7c15ULL;
  }
  if (made.log() == 0) made.uuid[0] ^= 1;
  CAIRN_CHECK(made.log() != 0);
  return made;
}

Status write_superblock(LogStorage& storage, const Superblock& superblock) {
  CAIRN_CHECK(is_possible(superblock.segment_bytes));
  Image image;
  image.uuid[0] = superblock.uuid[0];
  image.uuid[1] = superblock.uuid[1];
  image.created_ns = superblock.created_ns;
  image.segment_bytes = superblock.segment_bytes;
  image.sum = sum_of(image);
  const std::string fresh = std::string(kSuperblockName) + ".new";
  auto file = storage.open(fresh, OpenHow::kCreate);
  if (!file) return file.status();
  int error = (*file)->write(std::as_bytes(std::span(&image, 1)), 0);
  if (error == 0) error = (*file)->flush();
  if (error == 0) error = storage.rename(fresh, kSuperblockName);
  if (error == 0) error = storage.sync_folder();
  if (error != 0) return Status::from_errno(-error, storage.where() + "/" + kSuperblockName);
  return Status::ok();
}

Result<OpenSuperblock> open_superblock(LogStorage& storage, SuperblockLock lock) {
  auto file = storage.open(kSuperblockName,
                           lock == SuperblockLock::kTaken ? OpenHow::kWrite : OpenHow::kRead);
  if (!file) return file.status();
  if (lock == SuperblockLock::kTaken) {
    const int error = (*file)->lock();
    if (error == -EWOULDBLOCK) {
      return Status(StatusCode::kUnavailable,
                    storage.where() +
                        " is in use by another node or command; a durable tier serves"
                        " one node at a time",
                    EBUSY);
    }
    if (error != 0) return Status::from_errno(-error, storage.where() + "/" + kSuperblockName);
  }
  Image image;
  const std::int64_t got = (*file)->read(std::as_writable_bytes(std::span(&image, 1)), 0);
  if (got < 0) return Status::from_errno(static_cast<int>(-got), storage.where());
  if (static_cast<std::size_t>(got) != kSuperblockBytes) image = Image{{}, 0, 0, {}, 0, 0, 0, 0};
  auto content = decode(storage.where(), image);
  if (!content) return content.status();
  return OpenSuperblock{*content, std::move(*file)};
}

}  // namespace cairn::durable
