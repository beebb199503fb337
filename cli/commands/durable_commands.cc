// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/durable_commands.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "base/size_text.h"
#include "cli/node/drain_view.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "service/durable_log/directory_storage.h"
#include "service/durable_log/log_check.h"
#include "service/replay/recovery.h"

namespace cairn::cli {
namespace {

using durable::Outcome;
using durable::RecoveredFile;
using durable::RecoveryReport;

double seconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

[[noreturn]] void fail(const Status& status) { throw Failure(status.message(), "", kExitRefused); }

std::string damaged_text(const RecoveredFile& file) {
  std::string text;
  for (const auto& [begin, end] : file.damaged) {
    text += fmt::format("\n  damaged in the log and lost: bytes {} to {}", begin, end - 1);
  }
  return text;
}

// One line, or several, of what happened to a file that is not simply at its place.
std::string file_text(const RecoveredFile& file, bool dry_run) {
  const std::string path = printable(file.path);
  const std::string written = printable(file.written);
  const std::string why = file.error == 0 ? "" : fmt::format(" ({})", std::strerror(file.error));
  std::string text;
  switch (file.outcome) {
    case Outcome::kRestored:
      if (file.written != file.path && !file.written.empty()) {
        text = fmt::format("{}: is {} now, and recovered there", path, written);
      }
      break;
    case Outcome::kMadeAnew:
      text = dry_run ? fmt::format("{}: would be made anew", path)
                     : fmt::format("{}: was not there; made anew{}{}", path,
                                   file.written == file.path ? "" : " as " + written,
                                   file.is_private ? ", readable by you alone" : "");
      break;
    case Outcome::kBeside:
      text = dry_run ? fmt::format("{}: was changed by somebody else since", path)
                     : fmt::format(
                           "{}: was changed by somebody else since and stays as it is; "
                           "recovered as {}{}",
                           path, written,
                           file.has_foreign_parts
                               ? ", whose parts that were stored already are from the "
                                 "changed file"
                               : "");
      break;
    case Outcome::kRescued:
      text = dry_run ? fmt::format("{}: has no place{}; would be rescued", path, why)
                     : fmt::format("{}: has no place{}; saved as {}", path, why, written);
      break;
    case Outcome::kKept:
      text = fmt::format("{}: not recovered{}; it stays in the durable tier", path, why);
      break;
  }
  if (!file.damaged.empty() && text.empty()) text = path + ":";
  return text + damaged_text(file);
}

void report_recovery(const std::string& directory, const RecoveryReport& report, bool dry_run) {
  std::uint64_t kept = 0;
  std::uint64_t bytes = 0;
  for (const RecoveredFile& file : report.files) {
    const std::string text = file_text(file, dry_run);
    if (!text.empty()) say(text);
    kept += file.outcome == Outcome::kKept ? 1 : 0;
    bytes += file.outcome == Outcome::kKept && !dry_run ? 0 : file.bytes;
  }
  for (const durable::Damage& damage : report.scan.damage) {
    say(fmt::format("{}: records {} to {} are damaged ({}); what they said is lost", directory,
                    durable::raw(damage.first), durable::raw(damage.last), damage.segment));
  }
  if (report.scan.is_torn) {
    say(
        fmt::format("{}: the log ends in {} records that were under way when the machine died; "
                    "nobody was told that they are safe",
                    directory, report.scan.torn));
  }
  if (report.names > 0) {
    say(fmt::format("{}: {} {} names", directory, dry_run ? "would set right" : "set right",
                    report.names));
  }
  if (report.files.empty() && report.names > 0) return;
  if (report.files.empty()) {
    say(fmt::format("{}: everything is stored already", directory));
  } else {
    say(fmt::format("{}: {} {} in {} files", directory, dry_run ? "would recover" : "recovered",
                    format_size(bytes), report.files.size() - (dry_run ? 0 : kept)));
  }
  if (kept > 0) {
    say(
        fmt::format("{} files are still in the durable tier. Run `cairn recover {}` again when "
                    "their store works, or with --rescue FOLDER to save them elsewhere",
                    kept, directory));
  }
}

}  // namespace

int recover_tiers(const RecoverCommandOptions& options) {
  int exit_status = kExitOk;
  for (const std::string& directory : options.directories) {
    durable::RecoveryOptions how;
    how.dry_run = options.dry_run;
    how.rescue_folder = options.rescue_folder;
    how.rescues_trouble = !options.rescue_folder.empty();
    DrainView view("recovering");
    const double began = seconds_now();
    how.progress = [&](std::uint64_t done, std::uint64_t all) {
      DrainProgress progress;
      progress.remaining_bytes = all - std::min(done, all);
      progress.rate_bytes_per_second = static_cast<double>(done) / (seconds_now() - began + 1e-9);
      view.update(progress);
    };
    auto report = durable::recover(directory, how);
    view.clear();
    if (!report) fail(report.status());
    report_recovery(directory, *report, options.dry_run);
    if (!report->is_complete()) exit_status = kExitNotStored;
  }
  return exit_status;
}

int check_tiers(const CheckCommandOptions& options) {
  int exit_status = kExitOk;
  for (const std::string& directory : options.directories) {
    auto storage = durable::open_directory_storage(directory, durable::FolderWanted::kExisting);
    if (!storage) fail(storage.status());
    auto report = durable::check_log(
        **storage, options.repair ? durable::CheckWhat::kRepair : durable::CheckWhat::kLook);
    if (!report) fail(report.status());
    for (const std::string& problem : report->problems) say(directory + ": " + problem);
    for (const std::string& repaired : report->repaired) say(directory + ": " + repaired);
    print(fmt::format("{}: {} segments, {} records with {}, {} spare segments{}\n", directory,
                      report->segments, report->scan.records, format_size(report->scan.bytes),
                      report->spare, report->scan.is_clean_end ? ", closed in order" : ""));
    if (!report->problems.empty()) exit_status = kExitNotStored;
  }
  return exit_status;
}

}  // namespace cairn::cli
