// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/rescue_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/private_file.h"
#include "base/rescue_list.h"
#include "base/size_text.h"
#include "cli/commands/rescued_files.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "service/process/unique_fd.h"

namespace cairn::cli {
namespace {

using node::UniqueFd;

std::string list_of(const std::string& directory) { return directory + "/" + kRescueListName; }

std::string text_of(int file, const std::string& name) {
  std::string text;
  std::vector<char> buffer(size_t{1} << 16);
  for (;;) {
    const ssize_t got = ::read(file, buffer.data(), buffer.size());
    if (got < 0) throw Failure(fmt::format("{}: {}", printable(name), std::strerror(errno)));
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
}

// Where lines are to be added: behind a whole one, with its end.
void mend_end(const std::string& name, const std::string& text, size_t whole_bytes) {
  const bool is_whole = whole_bytes == text.size() && text.ends_with('\n');
  if (is_whole) return;
  const UniqueFd list(::open(name.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  const bool is_mended = list && ::ftruncate(list.get(), static_cast<off_t>(whole_bytes)) == 0 &&
                         (text[whole_bytes - 1] == '\n' || ::write(list.get(), "\n", 1) == 1);
  if (!is_mended) throw Failure(fmt::format("{}: {}", printable(name), std::strerror(errno)));
}

RescuedFiles read_list(const RescueOptions& options) {
  const std::string name = list_of(options.directory);
  const UniqueFd list(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!list)
    throw Failure(fmt::format("{}: {}", printable(name), std::strerror(errno)),
                  "name a directory that a rescue has made; the node's log has it");
  // It says where to write: nobody else may have written it.
  if (!is_written_by_user_alone(list.get()))
    throw Failure(fmt::format("{} is another user's, or others may write to it", printable(name)));
  const std::string text = text_of(list.get(), name);
  RescuedFiles found = parse_rescue_list(name, text);
  if (!options.dry_run) mend_end(name, text, found.whole_bytes);
  return found;
}

// Returns errno or 0.
int copy_range(int from, int to, const RescueEntry& range) {
  std::vector<char> buffer(size_t{1} << 20);
  for (uint64_t done = 0; done < range.length;) {
    const size_t most = std::min<uint64_t>(buffer.size(), range.length - done);
    const auto at = static_cast<off_t>(range.offset + done);
    const ssize_t got = ::pread(from, buffer.data(), most, at);
    if (got <= 0) return got == 0 ? EIO : errno;
    for (ssize_t put = 0; put < got;) {
      const ssize_t some =
          ::pwrite(to, buffer.data() + put, static_cast<size_t>(got - put), at + put);
      if (some <= 0) return some == 0 ? EIO : errno;
      put += some;
    }
    done += static_cast<uint64_t>(got);
  }
  return 0;
}

const char* kind_of(mode_t mode) {
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISDIR(mode) ? "a directory" : "a device";
}

// Why what has the file's name is not the file; empty: it is.
std::string difference(const struct stat& found, const RescueEntry& about) {
  if (!S_ISREG(found.st_mode))
    return fmt::format(
        "{} has its name by now: move that away, put the file (inode {}) back there, and run this "
        "command again",
        kind_of(found.st_mode), about.inode);
  return found.st_ino == about.inode ? "" : "another file has its name";
}

// The file that the list means, for writing. Empty text: it is that one.
std::string open_place(const RescuedFile& file, UniqueFd* place) {
  const RescueEntry& about = file.about;
  if (about.path.empty()) return "nobody knows its path";
  struct stat status{};
  // Before it is opened: a device may act on that alone.
  if (::lstat(about.path.c_str(), &status) != 0) return std::strerror(errno);
  if (std::string other = difference(status, about); !other.empty()) return other;
  // The name may mean something else by now: a link is not followed, and a FIFO not waited for.
  place->reset(::open(about.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!*place || ::fstat(place->get(), &status) != 0) return std::strerror(errno);
  if (std::string other = difference(status, about); !other.empty()) return other;
  if (file.is_begun) return "";
  const timespec left = time_of(about.stored_ns);
  const bool is_same =
      status.st_mtim.tv_sec == left.tv_sec && status.st_mtim.tv_nsec == left.tv_nsec;
  if (!is_same) return "it was changed since";
  return "";
}

// Durable before the first byte of the file is written: a call that is killed from then on leaves a
// file that looks changed. Returns errno or 0.
int note_begun(const std::string& directory, const RescuedFile& file) {
  if (file.is_begun) return 0;
  const UniqueFd list(
      ::open(list_of(directory).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  if (!list) return errno;
  const off_t end = ::lseek(list.get(), 0, SEEK_END);
  const std::string line = begun_line(file.about);
  const ssize_t put = ::write(list.get(), line.data(), line.size());
  if (put != static_cast<ssize_t>(line.size())) {
    const int error = put < 0 ? errno : ENOSPC;
    // The word about the next file is not to stand behind half of this one.
    (void)!::ftruncate(list.get(), end);
    return error;
  }
  return ::fsync(list.get()) == 0 ? 0 : errno;
}

// A name that comes back after a crash would have the file written again, and what others have
// written to it since.
void remove_saved(const std::string& directory, const std::string& name) {
  const UniqueFd folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (::unlinkat(folder.get(), name.c_str(), 0) == 0) (void)::fsync(folder.get());
}

// Returns why it could not be done; empty when it is.
std::string put_in_place(const std::string& directory, const RescuedFile& file,
                         const UniqueFd& saved) {
  UniqueFd place;
  if (std::string problem = open_place(file, &place); !problem.empty()) return problem;
  if (const int error = note_begun(directory, file); error != 0)
    return fmt::format("{}: {}", printable(list_of(directory)), std::strerror(error));
  for (const RescueEntry& range : file.ranges) {
    const int error = copy_range(saved.get(), place.get(), range);
    if (error == 0) continue;
    return std::strerror(error);
  }
  struct stat status{};
  const bool is_short =
      ::fstat(place.get(), &status) == 0 && static_cast<uint64_t>(status.st_size) < file.about.size;
  if (is_short && ::ftruncate(place.get(), static_cast<off_t>(file.about.size)) != 0)
    return std::strerror(errno);
  const timespec times[2] = {{0, UTIME_OMIT}, time_of(file.about.mtime_ns)};
  (void)::futimens(place.get(), times);
  if (::fsync(place.get()) != 0) return std::strerror(errno);
  return "";
}

// This command removes what it has written, and says before the first byte that it begins.
bool is_done(const std::string& directory, const RescuedFile& file) {
  const std::string name = directory + "/" + file.about.saved;
  return file.is_begun && ::access(name.c_str(), F_OK) != 0 && errno == ENOENT;
}

// Opens what is saved of a file. Returns why it cannot be read; empty when it can.
std::string open_saved(const std::string& name, UniqueFd* saved) {
  saved->reset(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status{};
  if (!*saved || ::fstat(saved->get(), &status) != 0) return std::strerror(errno);
  return S_ISREG(status.st_mode) ? "" : "no regular file";
}

// Returns: whether it is at its place, or would be after a call that is no dry run.
bool finish_file(const RescueOptions& options, const RescuedFile& file) {
  const std::string name = options.directory + "/" + file.about.saved;
  const std::string what = fmt::format("{}: {}", name_of(file.about), format_size(file.bytes));
  UniqueFd saved;
  if (const std::string problem = open_saved(name, &saved); !problem.empty()) {
    say(fmt::format("{} cannot be read from {}: {}", what, printable(name), problem));
    return false;
  }
  if (options.dry_run) {
    UniqueFd place;
    const std::string problem = open_place(file, &place);
    say(fmt::format("{} would be {}", what, problem.empty() ? "written" : "left: " + problem));
    return problem.empty();
  }
  const std::string problem = put_in_place(options.directory, file, saved);
  if (problem.empty()) {
    say(fmt::format("{} written", what));
    remove_saved(options.directory, file.about.saved);
  } else {
    say(fmt::format("{} are left in {}: {}", what, printable(name), problem));
  }
  return problem.empty();
}

// The rescue itself had no room for it, or died of it: the list is all that is known.
void say_lost(const RescueOptions& options, const RescuedFiles& list) {
  for (const auto& [name, file] : list.lost)
    say(fmt::format("{}: {} are lost: {}", name,
                    file.bytes == 0 ? "size and time" : format_size(file.bytes),
                    printable(file.why)));
  if (!list.lost.empty())
    say(fmt::format("{} says which bytes are lost; remove {} when you have no more need of it",
                    printable(list_of(options.directory)), printable(options.directory)));
}

// Files that the list does not name: the rescue may have had no room for their lines.
std::vector<std::string> unlisted(const std::string& directory, const RescuedFiles& list) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    if (name != kRescueListName && !list.saved.contains(name)) names.push_back(name);
  }
  if (error) throw Failure(fmt::format("{}: {}", printable(directory), error.message()));
  return names;
}

}  // namespace

int finish_rescue(const RescueOptions& options) {
  const RescuedFiles list = read_list(options);
  bool is_complete = list.lost.empty();
  for (const auto& [saved, file] : list.saved) {
    if (is_done(options.directory, file)) continue;
    is_complete = finish_file(options, file) && is_complete;
  }
  say_lost(options, list);
  for (const std::string& name : unlisted(options.directory, list)) {
    say(fmt::format("{}/{}: the list does not say whose it is; move it away when you know",
                    printable(options.directory), printable(name)));
    is_complete = false;
  }
  if (!is_complete) return kExitNotStored;
  if (options.dry_run) return kExitOk;
  const bool is_removed =
      ::unlink(list_of(options.directory).c_str()) == 0 && ::rmdir(options.directory.c_str()) == 0;
  if (!is_removed)
    say(fmt::format("all is written, but {} cannot be removed: {}", printable(options.directory),
                    std::strerror(errno)));
  return kExitOk;
}

}  // namespace cairn::cli
