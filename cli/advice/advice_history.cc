// SPDX-License-Identifier: Apache-2.0
#include "cli/advice/advice_history.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

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

bool ends_whole(int file) {
  const off_t size = ::lseek(file, 0, SEEK_END);
  char last = 0;
  return size <= 0 || (::pread(file, &last, 1, size - 1) == 1 && last == '\n');
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
  return fmt::format("{:+.0f} %{}", 100 * run.error(), run.is_inside() ? "" : ", outside");
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
  const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) throw Failure(fmt::format("{}: {}", path_, std::strerror(errno)), kRemedy);
  // Another run may end at the same moment; the lock goes with the descriptor.
  bool written = ::flock(file, LOCK_EX) == 0;
  if (written) {
    std::vector<ForetoldRun> kept = runs();
    const bool is_full = kept.size() >= kRunsMax;
    if (is_full) kept.erase(kept.begin(), kept.end() - (kRunsMax - 1));
    const std::string added = text_of({run});
    // A line of somebody who died in the middle has no end: what follows it begins one.
    const std::string text =
        is_full ? text_of(kept) + added : (ends_whole(file) ? added : "\n" + added);
    written = (is_full ? ::ftruncate(file, 0) == 0 : ::lseek(file, 0, SEEK_END) >= 0) &&
              write_fully(file, text);
  }
  const int error = errno;
  if (::close(file) != 0 || !written)
    throw Failure(fmt::format("{}: {}", path_, std::strerror(error)), kRemedy);
}

std::vector<ForetoldRun> AdviceHistory::runs() const {
  std::vector<ForetoldRun> found;
  std::ifstream file(path_);
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return found;
    throw Failure(fmt::format("{}: {}", path_, std::strerror(errno)), "make it readable");
  }
  std::string line;
  while (std::getline(file, line)) {
    ForetoldRun run;
    if (take(line, &run)) found.push_back(std::move(run));
  }
  return found;
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
