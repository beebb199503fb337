// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/rescue_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <vector>

#include "base/private_file.h"
#include "base/rescue_list.h"
#include "base/size_text.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "service/process/unique_fd.h"

namespace cairn::cli {
namespace {

using node::UniqueFd;

// The ranges of one file, as the list has them; those that are lost are not among them.
struct RescuedFile {
  RescueEntry about;
  std::vector<RescueEntry> ranges;
  uint64_t bytes = 0;
  bool is_begun = false;  // a call before this one may have written a part
};

struct RescueList {
  std::map<std::string, RescuedFile> files;  // by the name of what is saved
  uint64_t lost_bytes = 0;
};

std::string list_of(const std::string& directory) { return directory + "/" + kRescueListName; }

// A call that was cut off at its word that it begins had written nothing. That goes from the list.
bool is_cut_off(const std::ifstream& stream, const std::string& line) {
  return stream.eof() && line.starts_with('b');
}

RescueList read_list(const std::string& directory) {
  const std::string name = list_of(directory);
  const UniqueFd list(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!list)
    throw Failure(fmt::format("{}: {}", printable(name), std::strerror(errno)),
                  "name a directory that a rescue has made; the node's log has it");
  // It says where to write: nobody else may have written it.
  if (!is_written_by_user_alone(list.get()))
    throw Failure(fmt::format("{} is another user's, or others may write to it", printable(name)));
  std::ifstream stream(name);
  std::string line;
  if (!std::getline(stream, line) || line + "\n" != rescue_list_head())
    throw Failure(fmt::format("{} is no list of this version of Cairn", printable(name)));
  RescueList found;
  auto whole = static_cast<off_t>(stream.tellg());
  while (std::getline(stream, line)) {
    if (is_cut_off(stream, line)) {
      if (::truncate(name.c_str(), whole) == 0) break;
      throw Failure(fmt::format("{}: {}", printable(name), std::strerror(errno)));
    }
    whole += static_cast<off_t>(line.size()) + 1;
    if (const auto begun = parse_begun_line(line)) {
      found.files[*begun].is_begun = true;
      continue;
    }
    const auto entry = parse_rescue_line(line);
    if (!entry || entry->saved.find('/') != std::string::npos)
      throw Failure(fmt::format("{}: a line that is none: {}", printable(name), printable(line)));
    if (entry->saved.empty()) {
      found.lost_bytes += entry->length;
      continue;
    }
    RescuedFile& file = found.files[entry->saved];
    file.about = *entry;
    file.ranges.push_back(*entry);
    file.bytes += entry->length;
  }
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

timespec time_of(int64_t nanoseconds) {
  constexpr int64_t kSecond = 1'000'000'000;
  int64_t seconds = nanoseconds / kSecond;
  if (nanoseconds % kSecond < 0) --seconds;
  return {seconds, nanoseconds - seconds * kSecond};
}

// The file that the list means, for writing. Empty text: it is that one.
std::string open_place(const RescuedFile& file, UniqueFd* place) {
  const RescueEntry& about = file.about;
  if (about.path.empty()) return "nobody knows its path";
  place->reset(::open(about.path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!*place) return std::strerror(errno);
  struct stat status{};
  if (::fstat(place->get(), &status) != 0) return std::strerror(errno);
  if (status.st_ino != about.inode) return "another file has its name";
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
  const std::string line = begun_line(file.about);
  const ssize_t put = ::write(list.get(), line.data(), line.size());
  if (put != static_cast<ssize_t>(line.size())) return put < 0 ? errno : ENOSPC;
  return ::fsync(list.get()) == 0 ? 0 : errno;
}

// A name that comes back after a crash would have the file written again, and what others have
// written to it since.
void remove_saved(const std::string& directory, const std::string& name) {
  const UniqueFd folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (::unlinkat(folder.get(), name.c_str(), 0) == 0) (void)::fsync(folder.get());
}

// Returns why it could not be done; empty when it is.
std::string put_in_place(const std::string& directory, const RescuedFile& file) {
  const std::string name = directory + "/" + file.about.saved;
  const UniqueFd saved(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!saved) return fmt::format("{}: {}", printable(name), std::strerror(errno));
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

// What the file is called in messages.
std::string name_of(const RescueEntry& about) {
  return about.path.empty() ? fmt::format("inode {}", about.inode) : printable(about.path);
}

}  // namespace

int finish_rescue(const RescueOptions& options) {
  const RescueList list = read_list(options.directory);
  unsigned left = 0;
  for (const auto& [saved, file] : list.files) {
    const std::string name = options.directory + "/" + saved;
    // Removed by this command, when it was run before.
    if (::access(name.c_str(), F_OK) != 0) continue;
    if (options.dry_run) {
      UniqueFd place;
      const std::string problem = open_place(file, &place);
      say(fmt::format("{}: {} would be {}", name_of(file.about), format_size(file.bytes),
                      problem.empty() ? "written" : "left: " + problem));
      continue;
    }
    const std::string problem = put_in_place(options.directory, file);
    if (problem.empty()) {
      say(fmt::format("{}: {} written", name_of(file.about), format_size(file.bytes)));
      remove_saved(options.directory, saved);
    } else {
      ++left;
      say(fmt::format("{}: {} are left in {}: {}", name_of(file.about), format_size(file.bytes),
                      printable(name), problem));
    }
  }
  if (list.lost_bytes != 0)
    say(fmt::format("{} could not even be saved; {}/{} says of which files",
                    format_size(list.lost_bytes), printable(options.directory), kRescueListName));
  if (options.dry_run) return kExitOk;
  if (left != 0) return kExitNotStored;
  if (list.lost_bytes != 0) return kExitOk;  // the list is all that is known of them
  ::unlink(list_of(options.directory).c_str());
  ::rmdir(options.directory.c_str());
  return kExitOk;
}

}  // namespace cairn::cli
