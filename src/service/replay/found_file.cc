// SPDX-License-Identifier: Apache-2.0
#include "service/replay/found_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "memory/backing/store_name.h"
#include "memory/flush/unfinished_time.h"
#include "service/durable_log/file_handle.h"

namespace cairn::durable {

namespace {

// The clock of a file system ticks behind the machine's; that of a server may be off.
constexpr std::int64_t kClockSlackNs = 2 * kSecondNs;
// Times of stores that keep no nanoseconds: cut to this many.
constexpr std::array<std::int64_t, 4> kTimeSteps = {100, 1000, kSecondNs, 2 * kSecondNs};
constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

bool is_file(int fd, const FileId& id, FileState* state) {
  struct statx found{};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &found) != 0) return false;
  if (!S_ISREG(found.stx_mode) || found.stx_ino != id.inode || found.stx_nlink == 0) return false;
  const std::int64_t birth =
      (found.stx_mask & STATX_BTIME) == 0
          ? 0
          : found.stx_btime.tv_sec * kSecondNs + static_cast<std::int64_t>(found.stx_btime.tv_nsec);
  if (id.birth_ns != 0 && birth != 0 && birth != id.birth_ns) return false;
  *state = {found.stx_size, found.stx_mtime.tv_sec * kSecondNs +
                                static_cast<std::int64_t>(found.stx_mtime.tv_nsec)};
  return true;
}

// The file may have another name in the same folder: a rename that the log has not heard of.
std::string search_folder(const std::string& folder, const FileId& id) {
  DIR* stream = ::opendir(folder.c_str());
  if (stream == nullptr) return {};
  std::string found;
  while (const dirent* entry = ::readdir(stream)) {
    if (entry->d_ino != id.inode) continue;
    const int fd = ::openat(::dirfd(stream), entry->d_name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    FileState state;
    if (fd >= 0 && is_file(fd, id, &state)) found = folder + "/" + entry->d_name;
    if (fd >= 0) ::close(fd);
  }
  ::closedir(stream);
  return found;
}

std::string path_of(int fd) {
  std::array<char, 4096> text{};
  const ssize_t got =
      ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), text.data(), text.size());
  return got <= 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(got));
}

bool is_absence(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

bool is_refusal(int error) { return error == EACCES || error == EPERM || error == ETXTBSY; }

// The file open for nothing but a look, wherever it is.
int look_for(const PendingFile& file, std::string* path, int* error) {
  FileState state;
  *path = file.identity.path;
  int fd = ::open(path->c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW);
  *error = fd < 0 ? errno : 0;
  if (fd >= 0 && is_file(fd, file.identity.key.id, &state)) return fd;
  if (fd >= 0) ::close(fd);
  if (fd < 0 && !is_absence(*error)) return -1;
  const int place = file.identity.handle.empty() ? -1 : open_folder_above(*path);
  if (place >= 0) {
    fd = open_by_handle(place, file.identity.handle, O_PATH | O_CLOEXEC);
    ::close(place);
    if (fd >= 0 && is_file(fd, file.identity.key.id, &state)) {
      *path = path_of(fd);
      return fd;
    }
    if (fd >= 0) ::close(fd);
  }
  const std::string other = search_folder(folder_of(*path), file.identity.key.id);
  if (other.empty()) return -1;
  *path = other;
  return ::open(other.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW);
}

// It is not found because its file system is not there.
bool is_elsewhere(const PendingFile& file) {
  const int folder = open_folder_above(file.identity.path);
  const bool is = folder >= 0 && fault_of_store(file, folder) != 0;
  if (folder >= 0) ::close(folder);
  return is;
}

// Opens what a descriptor of O_PATH means. Its owner may write to it, whatever its mode is.
int reopen(int looked, int access) {
  const std::string name = "/proc/self/fd/" + std::to_string(looked);
  const int flags = (access | kFlags) & ~O_NOFOLLOW;
  int fd = ::open(name.c_str(), flags);
  if (fd >= 0 || errno != EACCES) return fd;
  struct stat status{};
  if (::fstat(looked, &status) != 0 || status.st_uid != ::geteuid()) {
    errno = EACCES;
    return -1;
  }
  if (::chmod(name.c_str(), (status.st_mode & 07777) | S_IRUSR | S_IWUSR) != 0) return -1;
  fd = ::open(name.c_str(), flags);
  const int error = errno;
  if (::chmod(name.c_str(), status.st_mode & 07777) != 0 && fd >= 0) {
    ::close(fd);
    return -1;
  }
  errno = error;
  return fd;
}

// While data of a file is on its way, the store bears the time of memory/flush/unfinished_time.h.
bool is_unfinished_of(const std::set<std::int64_t>& times, std::int64_t now) {
  return std::any_of(times.begin(), times.end(),
                     [now](std::int64_t time) { return unfinished_time(time) == now; });
}

bool is_known_time(const std::set<std::int64_t>& times, std::int64_t now) {
  if (times.contains(now) || is_unfinished_of(times, now)) return true;
  for (const std::int64_t step : kTimeSteps) {
    if (now % step != 0) return false;
    const auto next = times.lower_bound(now);
    if (next != times.end() && *next < now + step) return true;
  }
  return false;
}

}  // namespace

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

int open_folder_above(const std::string& path) {
  for (std::string folder = folder_of(path);; folder = folder_of(folder)) {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 || folder == "/" || folder == ".") return fd;
  }
}

int fault_of_store(const PendingFile& file, int folder) {
  if (file.identity.store == StoreName::kUnknown) return 0;
  const StoreName here = store_name_of(folder);
  return here == StoreName::kUnknown || here == file.identity.store ? 0 : ENODEV;
}

bool is_certainly(const PendingFile& file, int fd) {
  FileState state;
  if (!is_file(fd, file.identity.key.id, &state)) return false;
  if (file.identity.handle.empty()) return file.identity.key.id.birth_ns != 0;
  return handle_of(fd) == file.identity.handle;
}

std::int64_t booted_at_ns() {
  timespec real{};
  timespec boot{};
  ::clock_gettime(CLOCK_REALTIME, &real);
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  return (real.tv_sec - boot.tv_sec) * kSecondNs + (real.tv_nsec - boot.tv_nsec);
}

bool has_restarted(const PendingFile& file, std::uint64_t boot) {
  return file.window.boot != 0 && boot != 0 && file.window.boot != boot;
}

bool is_explained(const PendingFile& file, const FileState& now, std::uint64_t boot,
                  std::int64_t booted_ns) {
  const bool is_known_size = file.sizes.contains(now.size);
  if (is_known_size && is_known_time(file.times, now.mtime_ns)) return true;
  if (!file.window.is_open()) return false;
  // The service was writing the file, so its time is that of the write, or of data that was on its
  // way: after the beginning, and before the machine started again. Its size may be any: the
  // service stores what the log has never heard of, too.
  if (is_known_time(file.times, now.mtime_ns)) return true;
  if (now.mtime_ns < file.window.since_ns - kClockSlackNs - kUnfinishedLagNs) return false;
  return !has_restarted(file, boot) || now.mtime_ns < booted_ns + kClockSlackNs;
}

FoundFile find_file(const PendingFile& file) {
  FoundFile found;
  if (file.identity.path.empty() || file.identity.path.front() != '/') {
    return found;  // nothing that a node would write
  }
  const int looked = look_for(file, &found.path, &found.error);
  if (looked < 0) {
    const bool is_nowhere = is_absence(found.error);
    if (found.error != 0 && !is_nowhere) {
      found.verdict = is_refusal(found.error) ? FileVerdict::kDenied : FileVerdict::kTrouble;
      return found;
    }
    if (is_elsewhere(file)) {
      found.error = ENODEV;
      found.verdict = FileVerdict::kTrouble;
      return found;
    }
    struct stat status{};
    const bool has_folder = ::stat(folder_of(file.identity.path).c_str(), &status) == 0;
    found.path = file.identity.path;
    const bool may_be_made = has_folder && file.is_complete();
    found.is_taken = may_be_made && found.error == 0;
    if (may_be_made && found.error == ENOENT) found.verdict = FileVerdict::kNew;
    return found;
  }
  FileState now;
  found.error = 0;
  // A removed file may have left its inode's number to another one.
  if (!is_file(looked, file.identity.key.id, &now) ||
      (file.is_removed && !is_certainly(file, looked))) {
    ::close(looked);
    return found;
  }
  const bool is_ours = is_explained(file, now, boot_mark(), booted_at_ns());
  found.fd = reopen(looked, is_ours ? O_RDWR : O_RDONLY);
  const int error = errno;
  ::close(looked);
  found.verdict = is_ours ? FileVerdict::kFound : FileVerdict::kChanged;
  if (found.fd < 0) {
    found.error = error;
    found.verdict = is_refusal(error) ? FileVerdict::kDenied : FileVerdict::kTrouble;
  }
  return found;
}

}  // namespace cairn::durable
