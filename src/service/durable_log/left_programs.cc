// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/left_programs.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/crash_point.h"
#include "service/durable_log/log_record.h"
#include "service/durable_log/program_note.h"

namespace cairn::durable {
namespace {

constexpr const char* kNoteName = "programs";
constexpr std::size_t kNamedMax = 8;
constexpr std::chrono::milliseconds kMoment{2000};
constexpr std::chrono::milliseconds kLookAgain{20};

std::string first_line_of(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// None where there is none that is whole.
std::optional<ProgramNote> read_note(const std::string& folder) {
  const std::string path = folder + "/" + kNoteName;
  struct stat status{};
  // Whatever else bears the name, opening it is not to wait for it.
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  // No more than a note has: whatever else bears the name may be large.
  std::string text(kProgramNoteBytesMax, '\0');
  std::ifstream file(path);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return parse_program_note(text);
}

// It means nothing after a crash of the machine, and needs no flush.
Status write_note(const std::string& folder, const ProgramNote& note) {
  const std::string path = folder + "/" + kNoteName;
  const std::string made = path + ".new";
  std::ofstream file(made, std::ios::trunc);
  file << program_note_line(note);
  file.close();
  if (!file) return {StatusCode::kUnavailable, "cannot write " + made, EIO};
  CAIRN_CRASH_POINT("log.programs-written");
  if (::rename(made.c_str(), path.c_str()) != 0) return Status::from_errno(errno, path);
  CAIRN_CRASH_POINT("log.programs-noted");
  return Status::ok();
}

// None: the process or thread has no memory, or the user may not see it.
std::optional<bool> is_mapped_by(const std::string& task, const ProgramNote& note) {
  std::ifstream maps(task + "/maps");
  std::optional<bool> is_mapped;
  std::string line;
  while (!is_mapped.value_or(false) && std::getline(maps, line)) is_mapped = is_map_of(line, note);
  return is_mapped;
}

// Calls visit(name) for each number among the names there, until it says true. False: there is no
// such folder.
template <typename Visit>
bool visit_numbers(const std::string& folder, Visit&& visit) {
  DIR* const all = ::opendir(folder.c_str());
  if (all == nullptr) return false;
  while (const dirent* const entry = ::readdir(all)) {
    const bool is_number = std::strspn(entry->d_name, "0123456789") == std::strlen(entry->d_name);
    if (is_number && visit(std::string(entry->d_name))) break;
  }
  ::closedir(all);
  return true;
}

// A process whose first thread has ended has its memory in the others alone.
bool has_mapped(const std::string& process, const ProgramNote& note) {
  std::optional<bool> is_mapped = is_mapped_by(process, note);
  if (is_mapped) return *is_mapped;
  (void)visit_numbers(process + "/task", [&](const std::string& task) {
    is_mapped = is_mapped_by(process + "/task/" + task, note);
    return is_mapped.has_value();
  });
  return is_mapped.value_or(false);
}

}  // namespace

Status note_programs(const std::string& folder, int memory) {
  struct stat status{};
  if (::fstat(memory, &status) != 0) return Status::from_errno(errno, "the node's memory");
  ProgramNote note{boot_mark(), ::major(status.st_dev), ::minor(status.st_dev), status.st_ino, 0};
  if (const auto before = read_note(folder)) {
    note.has_older = before->has_older != 0 || before->boot != note.boot ? 1 : 0;
    // By the service before this one, on a tier that may be full by now.
    if (*before == note) return Status::ok();
  }
  return write_note(folder, note);
}

void forget_programs(const std::string& folder) {
  (void)::unlink((folder + "/" + kNoteName).c_str());
}

void keep_programs(const std::string& folder) {
  if (read_note(folder)) return;
  ProgramNote note;
  note.has_older = 1;
  (void)write_note(folder, note);
}

Result<std::vector<LeftProgram>> left_programs(const std::string& folder) {
  std::vector<LeftProgram> left;
  const auto note = read_note(folder);
  if (!note || note->boot != boot_mark()) return left;
  const bool is_there = visit_numbers("/proc", [&](const std::string& name) {
    const std::string process = "/proc/" + name;
    if (has_mapped(process, *note))
      left.push_back({std::stoi(name), first_line_of(process + "/comm")});
    return false;
  });
  if (is_there) return left;
  return Status(StatusCode::kUnavailable,
                "whether programs of a node that died still run cannot be seen: there is no /proc",
                ENOENT);
}

Status await_end_of_programs(const std::string& folder) {
  const auto until = std::chrono::steady_clock::now() + kMoment;
  std::vector<LeftProgram> left;
  // A look takes a while, in which one may have passed on what it has to a child: one that finds
  // nobody is followed by another.
  for (int found_none = 0; found_none < 2;) {
    auto found = left_programs(folder);
    if (!found) return found.status();
    left = std::move(*found);
    found_none = left.empty() ? found_none + 1 : 0;
    if (!left.empty() && std::chrono::steady_clock::now() >= until) break;
    if (!left.empty()) std::this_thread::sleep_for(kLookAgain);
  }
  if (left.empty()) return Status::ok();
  std::string text =
      "programs of a node that died still run, and may change what it has left in " + folder + ":";
  for (std::size_t at = 0; at < std::min(left.size(), kNamedMax); ++at)
    text += " " + std::to_string(left[at].pid) + " (" + left[at].name + ")";
  if (left.size() > kNamedMax) text += " and " + std::to_string(left.size() - kNamedMax) + " more";
  // A rescue stores what they have left: nobody may end that.
  const bool is_being_rescued = std::ranges::any_of(
      left, [](const LeftProgram& program) { return program.name.starts_with("cairn-"); });
  text += is_being_rescued ? ". Wait for their end" : ". Wait for their end, or end them";
  return {StatusCode::kUnavailable, text + ", and try again", EBUSY};
}

bool is_of_this_start(const std::string& folder) {
  const auto note = read_note(folder);
  return note && note->boot == boot_mark() && note->has_older == 0;
}

}  // namespace cairn::durable
