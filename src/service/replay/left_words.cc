// SPDX-License-Identifier: Apache-2.0
#include "service/replay/left_words.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/check.h"

namespace cairn::durable {
namespace {

// More is no file of words: it would be one of a million files.
constexpr std::uint64_t kBytesMax = std::uint64_t{64} << 20;

std::string path_of_words(const std::string& folder) {
  return folder + "/" + OrphanWord::kFileName;
}

}  // namespace

std::vector<OrphanWord> whole_words(std::string_view bytes) {
  std::vector<OrphanWord> words;
  OrphanWord word;
  // Behind one that was torn the next begins anywhere.
  for (std::size_t at = 0; at + sizeof word <= bytes.size();) {
    std::memcpy(&word, bytes.data() + at, sizeof word);
    at += word.is_whole() ? sizeof word : 1;
    if (word.is_whole()) words.push_back(word);
  }
  CAIRN_DCHECK(words.size() <= bytes.size() / sizeof word);
  return words;
}

Result<std::vector<OrphanWord>> left_words(const std::string& folder) {
  const std::string path = path_of_words(folder);
  struct stat status{};
  // Whatever else bears the name, opening it is not to wait for it.
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return std::vector<OrphanWord>{};
    return Status::from_errno(errno, path);
  }
  if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) > kBytesMax) {
    return Status(StatusCode::kInvalid, path + " is not what programs leave there: remove it",
                  EINVAL);
  }
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())) && !file.eof())
    return Status(StatusCode::kUnavailable, "cannot read " + path, EIO);
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return whole_words(bytes);
}

Status forget_words(const std::string& folder) {
  const std::string path = path_of_words(folder);
  if (::unlink(path.c_str()) != 0)
    return errno == ENOENT ? Status::ok() : Status::from_errno(errno, path);
  const int place = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (place < 0) return Status::from_errno(errno, folder);
  const int error = ::fsync(place) == 0 ? 0 : errno;
  ::close(place);
  return error == 0 ? Status::ok() : Status::from_errno(error, folder);
}

}  // namespace cairn::durable
