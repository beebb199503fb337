// SPDX-License-Identifier: Apache-2.0
#include "cli/advice/advice_history.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/check.h"
#include "base/size_text.h"
#include "base/state_directory.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

constexpr const char* kRemedy = "set XDG_STATE_HOME to a directory that you may write in";

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  char text[32] = {};
  (void)::localtime_r(&now, &local);
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
  CAIRN_CHECK(length > 0);
  return text;
}

nlohmann::ordered_json json_of(const ForetoldRun& run) {
  return {{"when", run.when},
          {"program", run.program},
          {"expected_seconds", run.expected},
          {"low", run.low},
          {"high", run.high},
          {"measured_seconds", run.measured},
          {"of", run.is_of_run ? "run" : "io"},
          {"exit_status", run.exit_status}};
}

// False for a line that is none of ours.
bool take(const std::string& line, ForetoldRun* run) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return false;
  try {
    run->when = json.at("when").get<std::string>();
    run->program = json.at("program").get<std::string>();
    run->expected = json.at("expected_seconds").get<double>();
    run->low = json.at("low").get<double>();
    run->high = json.at("high").get<double>();
    run->measured = json.at("measured_seconds").get<double>();
    run->is_of_run = json.value("of", "io") == "run";
    run->exit_status = json.at("exit_status").get<int>();
  } catch (const nlohmann::json::exception&) {
    return false;
  }
  return true;
}

std::string text_of(const std::vector<ForetoldRun>& runs) {
  std::string text;
  for (const ForetoldRun& run : runs)
    text += json_of(run).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  return text;
}

// A file of the history, open. Errors name it.
class HistoryFile {
 public:
  // Far more than the lines that are kept.
  static constexpr off_t kBytesMax = off_t{8} << 20;

  // No descriptor where there is no file; `flags` may make one. Another kind of file than
  // a regular one might never answer.
  HistoryFile(const std::string& path, int flags) : path_(path) {
    file_ = ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0600);
    if (file_ < 0 && (errno == ENOENT || errno == ENOTDIR) && (flags & O_CREAT) == 0) return;
    if (file_ < 0) fail(errno);
    struct stat status{};
    if (::fstat(file_, &status) != 0) fail(errno);
    size_ = status.st_size;
    inode_ = status.st_ino;
    if (!S_ISREG(status.st_mode) || size_ > kBytesMax)
      throw Failure(fmt::format("{}: not a history of advice", path), "remove it");
  }
  ~HistoryFile() {
    if (file_ >= 0) ::close(file_);
  }
  HistoryFile(const HistoryFile&) = delete;
  HistoryFile& operator=(const HistoryFile&) = delete;

  // Waits a second for others at most. Returns: false where the file has been replaced meanwhile.
  bool lock() {
    constexpr int kTries = 100;
    constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 10'000'000};
    for (int tries = 1; ::flock(file_, LOCK_EX | LOCK_NB) != 0; ++tries) {
      if (errno != EWOULDBLOCK || tries == kTries) fail(errno);
      ::nanosleep(&kPause, nullptr);
    }
    struct stat now{};
    if (::stat(path_.c_str(), &now) != 0 || now.st_ino != inode_) return false;
    size_ = now.st_size;
    return true;
  }

  std::string text() const {
    std::string text(file_ < 0 ? 0 : static_cast<std::size_t>(size_), '\0');
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t got =
          ::pread(file_, text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (got < 0) fail(errno);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    text.resize(done);
    return text;
  }

  // All of the text or nothing. Requires: the lock.
  void append(const std::string& text) const {
    if (::lseek(file_, 0, SEEK_END) >= 0 && write_fully(file_, text)) return;
    const int error = errno;
    (void)::ftruncate(file_, size_);
    fail(error);
  }

  // As a whole. Requires: the lock.
  void replace(const std::string& text) const {
    const std::string fresh = path_ + ".new";
    const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) fail(errno);
    bool is_written = write_fully(file, text);
    int error = errno;
    if (::close(file) != 0 && is_written) {
      is_written = false;
      error = errno;
    }
    if (is_written && ::rename(fresh.c_str(), path_.c_str()) == 0) return;
    if (is_written) error = errno;
    (void)::unlink(fresh.c_str());
    fail(error);
  }

 private:
  [[noreturn]] void fail(int error) const {
    throw Failure(fmt::format("{}: {}", path_, std::strerror(error)), kRemedy);
  }

  const std::string path_;
  int file_ = -1;
  off_t size_ = 0;
  ino_t inode_ = 0;
};

// Where the last `lines` of the text begin, each of which has an end.
std::size_t start_of_last_lines(const std::string& text, std::size_t lines) {
  CAIRN_CHECK(!text.empty() && text.back() == '\n');
  std::size_t start = text.size();
  for (; lines > 0 && start > 0; --lines) {
    const std::size_t end = start < 2 ? std::string::npos : text.rfind('\n', start - 2);
    start = end == std::string::npos ? 0 : end + 1;
  }
  return start;
}

std::vector<ForetoldRun> runs_in(const std::string& text) {
  std::vector<ForetoldRun> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    ForetoldRun run;
    if (take(line, &run)) found.push_back(std::move(run));
  }
  return found;
}

// What the runs that ended well come to.
struct Summary {
  std::size_t compared = 0;
  std::size_t inside = 0;
  double median_error = 0;  // without its sign
};

Summary summary_of(const std::vector<ForetoldRun>& runs) {
  Summary summary;
  std::vector<double> errors;
  for (const ForetoldRun& run : runs) {
    if (run.exit_status != 0 || run.measured <= 0) continue;
    errors.push_back(std::fabs(run.error()));
    if (run.is_inside()) ++summary.inside;
  }
  summary.compared = errors.size();
  CAIRN_CHECK(summary.inside <= summary.compared);
  if (errors.empty()) return summary;
  std::ranges::sort(errors);
  const std::size_t middle = errors.size() / 2;
  summary.median_error =
      errors.size() % 2 == 1 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
  return summary;
}

std::string error_text(const ForetoldRun& run) {
  if (run.exit_status != 0) return fmt::format("exit status {}", run.exit_status);
  if (run.measured <= 0) return "no I/O";
  return fmt::format("{:+.0f} %{}{}", 100 * run.error(), run.is_inside() ? "" : ", outside",
                     run.is_of_run ? ", of the whole run" : "");
}

}  // namespace

double ForetoldRun::error() const {
  CAIRN_CHECK(measured > 0);
  return expected / measured - 1;
}

AdviceHistory::AdviceHistory() {
  const std::string state = state_directory();
  if (state.empty()) throw Failure("there is no directory for the history of advice", kRemedy);
  path_ = state + "/advice.jsonl";
}

void AdviceHistory::add(ForetoldRun run) const {
  run.when = now_text();
  const std::string directory = path_.substr(0, path_.rfind('/'));
  if (const int error = make_directories(directory); error != 0)
    throw Failure(fmt::format("{}: {}", directory, std::strerror(error)), kRemedy);
  constexpr int kReplacedMax = 10;
  for (int tries = 0; tries < kReplacedMax; ++tries) {
    HistoryFile file(path_, O_RDWR | O_CREAT);
    if (!file.lock()) continue;
    // A line of somebody who died in the middle has no end: what follows it begins one.
    std::string before = file.text();
    const bool ends_whole = before.empty() || before.back() == '\n';
    const std::string added = (ends_whole ? "" : "\n") + text_of({run});
    before += added;
    const std::size_t kept = start_of_last_lines(before, kRunsMax);
    return kept == 0 ? file.append(added) : file.replace(before.substr(kept));
  }
  throw Failure(fmt::format("{}: others replace it all the time", path_), "try again");
}

std::vector<ForetoldRun> AdviceHistory::runs() const {
  return runs_in(HistoryFile(path_, O_RDONLY).text());
}

std::string history_text(const std::vector<ForetoldRun>& runs) {
  if (runs.empty())
    return "No run has followed an advice yet: cairn advise --write FILE, then "
           "cairn run --config FILE\n";
  std::string text = fmt::format("{:<17} {:<20} {:>10} {:>21} {:>10}  {}\n", "WHEN", "PROGRAM",
                                 "FORETOLD", "INTERVAL", "MEASURED", "ERROR");
  for (const ForetoldRun& run : runs) {
    const std::string interval = format_duration(run.low) + " to " + format_duration(run.high);
    text += fmt::format("{:<17} {:<20} {:>10} {:>21} {:>10}  {}\n", run.when,
                        printable(run.program), format_duration(run.expected), interval,
                        format_duration(run.measured), error_text(run));
  }
  const Summary summary = summary_of(runs);
  if (summary.compared == 0) return text + "\nNo run that ended well can be compared.\n";
  return text + fmt::format("\n{} compared: median error {:.0f} %, {} inside the interval\n",
                            summary.compared, 100 * summary.median_error, summary.inside);
}

std::string history_json(const std::vector<ForetoldRun>& runs) {
  const Summary summary = summary_of(runs);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ForetoldRun& run : runs) list.push_back(json_of(run));
  const nlohmann::ordered_json object = {{"runs", std::move(list)},
                                         {"compared", summary.compared},
                                         {"inside", summary.inside},
                                         {"median_error", summary.median_error}};
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace cairn::cli
