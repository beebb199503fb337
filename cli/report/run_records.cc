// SPDX-License-Identifier: Apache-2.0
#include "cli/report/run_records.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "base/check.h"
#include "base/size_text.h"
#include "base/state_directory.h"
#include "cli/node/json_fields.h"
#include "cli/report/report_file.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/terminal/patience.h"

namespace cairn::cli {
namespace {

using Json = nlohmann::json;

constexpr const char* kSuffix = ".json";

// "20261128-131400-4711" ends with the run's id.
bool is_of_run(const std::string& name, const std::string& run) {
  return name == run ||
         (name.size() > run.size() + 1 &&
          name.compare(name.size() - run.size() - 1, std::string::npos, "-" + run) == 0);
}

std::string read_whole(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (file < 0 || ::fstat(file, &status) != 0) {
    const int error = errno;
    if (file >= 0) ::close(file);
    throw Failure(fmt::format("{}: {}", path, std::strerror(error)),
                  "`cairn report --list` names the runs that are kept");
  }
  if (static_cast<uint64_t>(status.st_size) > RunRecords::kRecordBytesMax) {
    ::close(file);
    throw Failure(fmt::format("{}: {} is too much for a record of a run", path,
                              format_size(static_cast<uint64_t>(status.st_size))),
                  "remove it");
  }
  std::string text(static_cast<size_t>(status.st_size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::read(file, text.data() + done, text.size() - done);
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  ::close(file);
  text.resize(done);
  return text;
}

// A launcher is a `cairn`, whose process id is the run's.
bool is_running(const std::string& run) {
  char* end = nullptr;
  const long pid = std::strtol(run.c_str(), &end, 10);
  if (run.empty() || *end != '\0' || pid <= 0) return false;
  char name[32] = {};
  const std::string path = fmt::format("/proc/{}/comm", pid);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t got = ::read(file, name, sizeof name - 1);
  ::close(file);
  return got > 0 && std::strncmp(name, "cairn", 5) == 0;
}

}  // namespace

nlohmann::json read_record(const std::string& path) {
  Json record = Json::parse(read_whole(path), nullptr, false);
  if (!record.is_object() || text_field(record, "schema") != "cairn-run-1") {
    throw Failure(fmt::format("{}: not a record of a run", path),
                  "`cairn report --list` names the runs that are kept; remove the file if it is "
                  "damaged");
  }
  if (!bool_field(record, "ended", false)) {
    const std::string run = text_field(member(record, "timeline"), "run");
    record["is_running"] = is_running(run);
    if (!record.contains("run")) record["run"] = run;
  }
  return record;
}

bool keep_in_time(const std::string& path, const nlohmann::json& record) {
  const std::string text = record.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const Done done = do_in_time([&] {
    try {
      RunRecords().make_room();
      write_report_file("record", path, text, "");
    } catch (const Failure&) {
      return false;
    }
    return true;
  });
  return done != Done::kNotInTime;
}

RunRecords::RunRecords() {
  const std::string state = state_directory();
  if (state.empty()) {
    throw Failure("there is no directory for the records of runs",
                  "set XDG_STATE_HOME to a directory that you may write in");
  }
  directory_ = state + "/runs";
}

void RunRecords::make_room() const {
  if (const int error = make_directories(directory_); error != 0) {
    throw Failure(fmt::format("{}: {}", directory_, std::strerror(error)),
                  "set XDG_STATE_HOME to a directory that you may write in");
  }
  prune();
}

std::string RunRecords::path_of(const std::string& run) const {
  CAIRN_CHECK(!run.empty());
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  char text[32] = {};
  (void)::localtime_r(&now, &local);
  const size_t length = std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  CAIRN_CHECK(length > 0);
  return fmt::format("{}/{}-{}{}", directory_, text, run, kSuffix);
}

std::vector<std::string> RunRecords::names() const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == kSuffix) names.push_back(entry.path().stem().string());
  }
  std::sort(names.rbegin(), names.rend());
  return names;
}

void RunRecords::prune() const {
  uint64_t bytes = 0;
  size_t count = 0;
  for (const std::string& name : names()) {
    const std::string path = directory_ + "/" + name + kSuffix;
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) continue;
    bytes += static_cast<uint64_t>(status.st_size);
    // One more is about to be written.
    if (++count < kRecordsMax && bytes <= kBytesMax) continue;
    (void)::unlink(path.c_str());
    (void)::unlink((path + ".new").c_str());
  }
}

std::string RunRecords::find(const std::string& run) const {
  const std::vector<std::string> kept = names();
  if (kept.empty()) {
    throw Failure(fmt::format("no run is kept in {}", directory_),
                  "`cairn run` keeps those that take a second or longer on a node of their own; "
                  "with --report FILE.html, any");
  }
  if (run.empty()) return kept.front();
  for (const std::string& name : kept) {
    if (is_of_run(name, run)) return name;
  }
  throw Failure(fmt::format("no run {} is kept in {}", printable(run), directory_),
                fmt::format("`cairn report --list` names the {} that are; the newest is {}",
                            kept.size(), kept.front()));
}

nlohmann::json RunRecords::load(const std::string& run) const {
  return read_record(directory_ + "/" + find(run) + kSuffix);
}

}  // namespace cairn::cli
