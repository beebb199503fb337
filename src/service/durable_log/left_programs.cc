// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/left_programs.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <thread>

#include "base/check.h"
#include "service/durable_log/log_record.h"

namespace cairn::durable {
namespace {

constexpr const char* kNoteName = "programs";
constexpr std::size_t kNamedMax = 8;
constexpr std::size_t kNoteBytesMax = 256;
constexpr std::chrono::milliseconds kMoment{2000};
constexpr std::chrono::milliseconds kLookAgain{20};

struct Note {
  std::uint64_t boot = 0;
  unsigned major = 0;
  unsigned minor = 0;
  std::uint64_t inode = 0;
};

std::string text_of(const Note& note) {
  char text[kNoteBytesMax];
  const int length = std::snprintf(text, sizeof text, "%016" PRIx64 " %02x:%02x %" PRIu64 "\n",
                                   note.boot, note.major, note.minor, note.inode);
  CAIRN_CHECK(length > 0 && static_cast<std::size_t>(length) < sizeof text);
  return {text, static_cast<std::size_t>(length)};
}

std::string first_line_of(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// False where there is none that is whole.
bool read_note(const std::string& folder, Note* note) {
  const std::string path = folder + "/" + kNoteName;
  struct stat status{};
  // Whatever else bears the name, opening it is not to wait for it.
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  return std::sscanf(first_line_of(path).c_str(), "%" SCNx64 " %x:%x %" SCNu64, &note->boot,
                     &note->major, &note->minor, &note->inode) == 4;
}

// A line of /proc/PID/maps: addresses, rights, offset, device, inode, path.
bool is_of(const std::string& line, const Note& note) {
  unsigned major = 0;
  unsigned minor = 0;
  std::uint64_t inode = 0;
  const int found = std::sscanf(line.c_str(), "%*s %*s %*s %x:%x %" SCNu64, &major, &minor, &inode);
  return found == 3 && inode == note.inode && major == note.major && minor == note.minor &&
         line.find("/memfd:cairn-") != std::string::npos;
}

bool has_mapped(const std::string& process, const Note& note) {
  std::ifstream maps(process + "/maps");
  std::string line;
  while (std::getline(maps, line)) {
    if (is_of(line, note)) return true;
  }
  return false;
}

}  // namespace

Status note_programs(const std::string& folder, int memory) {
  struct stat status{};
  if (::fstat(memory, &status) != 0) return Status::from_errno(errno, "the node's memory");
  const std::string text =
      text_of({boot_mark(), ::major(status.st_dev), ::minor(status.st_dev), status.st_ino});
  const std::string path = folder + "/" + kNoteName;
  const std::string made = path + ".new";
  std::ofstream file(made, std::ios::trunc);
  file << text;
  file.close();
  if (!file) return {StatusCode::kUnavailable, "cannot write " + made, EIO};
  // It means nothing after a crash of the machine, and needs no flush.
  if (::rename(made.c_str(), path.c_str()) != 0) return Status::from_errno(errno, path);
  return Status::ok();
}

void forget_programs(const std::string& folder) {
  (void)::unlink((folder + "/" + kNoteName).c_str());
}

std::vector<LeftProgram> left_programs(const std::string& folder) {
  std::vector<LeftProgram> left;
  Note note;
  if (!read_note(folder, &note) || note.boot != boot_mark()) return left;
  DIR* const all = ::opendir("/proc");
  if (all == nullptr) return left;
  while (const dirent* const entry = ::readdir(all)) {
    const std::string_view name = entry->d_name;
    int pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    const std::string process = "/proc/" + std::string(name);
    if (has_mapped(process, note)) left.push_back({pid, first_line_of(process + "/comm")});
  }
  ::closedir(all);
  return left;
}

bool is_of_this_start(const std::string& folder) {
  Note note;
  return read_note(folder, &note) && note.boot == boot_mark();
}

Status await_end_of_programs(const std::string& folder) {
  const auto until = std::chrono::steady_clock::now() + kMoment;
  std::vector<LeftProgram> left = left_programs(folder);
  while (!left.empty() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kLookAgain);
    left = left_programs(folder);
  }
  if (left.empty()) return Status::ok();
  std::string text =
      "programs of a node that died still run, and may change what it has left in " + folder + ":";
  for (std::size_t at = 0; at < std::min(left.size(), kNamedMax); ++at)
    text += " " + std::to_string(left[at].pid) + " (" + left[at].name + ")";
  if (left.size() > kNamedMax) text += " and " + std::to_string(left.size() - kNamedMax) + " more";
  return {StatusCode::kUnavailable, text + ". Wait for their end, or end them, and try again",
          EBUSY};
}

}  // namespace cairn::durable
