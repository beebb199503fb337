// SPDX-License-Identifier: Apache-2.0
#include "service/replay/rescue_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "base/check.h"

namespace cairn::durable {

namespace {

constexpr std::size_t kNameBytesKept = 120;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    const auto value = static_cast<unsigned char>(letter);
    if (value < 0x20 || value == 0x7f || letter == '\\') {
      std::array<char, 8> octal{};
      std::snprintf(octal.data(), octal.size(), "\\%03o", value);
      out += octal.data();
    } else {
      out += letter;
    }
  }
  return out;
}

std::string plain_name(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1).substr(0, kNameBytesKept);
  for (char& letter : name) {
    const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                          (letter >= '0' && letter <= '9') || letter == '.' || letter == '-';
    if (!is_plain) letter = '_';
  }
  return name;
}

std::string content_of(int fd) {
  std::string text;
  std::array<char, 4096> part{};
  ssize_t got = 0;
  while ((got = ::read(fd, part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

int RescueFolder::make() {
  if (is_made_) return 0;
  if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST) return errno;
  struct stat status{};
  if (::lstat(path_.c_str(), &status) != 0) return errno;
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid()) return EPERM;
  is_made_ = true;
  return sync_folder_of(path_ + "/..");
}

// A line that an earlier recovery has added is not added again.
int RescueFolder::note(const std::string& name, const PendingFile& file,
                       std::uint64_t bytes) const {
  const int fd = ::open((path_ + "/" + kRescueList).c_str(),
                        O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return errno;
  int error = 0;
  const std::string before = "\n" + content_of(fd);
  if (before.find("\n" + name + "\t") == std::string::npos) {
    const std::string line = name + "\t" + std::to_string(file.state.size) + "\t" +
                             std::to_string(bytes) + "\t" + escaped(file.identity.path) + "\n";
    const ssize_t put = ::write(fd, line.data(), line.size());
    if (put != static_cast<ssize_t>(line.size())) error = put < 0 ? errno : ENOSPC;
  }
  if (error == 0 && ::fsync(fd) != 0) error = errno;
  ::close(fd);
  return error;
}

SavedCopy RescueFolder::save(ExtentCopy& extents, const PendingFile& file) {
  CAIRN_CHECK(file.is_pending() && !path_.empty());
  SavedCopy saved;
  saved.error = make();
  if (saved.error != 0) return saved;
  const std::string name = std::to_string(file.identity.key.id.inode) + "-" +
                           std::to_string(raw(file.last)) + "-" + plain_name(file.identity.path);
  saved = save_copy(extents, file, {path_, name, -1, WhenTaken::kOtherName});
  if (saved.error != 0) return saved;
  saved.error = note(saved.path.substr(saved.path.rfind('/') + 1), file, file.bytes());
  return saved;
}

}  // namespace cairn::durable
