// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/durable_commands.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/node_config.h"
#include "base/size_text.h"
#include "cli/configuration/configuration.h"
#include "cli/node/drain_view.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "service/durable_log/directory_storage.h"
#include "service/durable_log/log_check.h"
#include "service/replay/outcome_text.h"
#include "service/replay/recovery.h"

namespace cairn::cli {
namespace {

using durable::Outcome;
using durable::RecoveredFile;
using durable::RecoveryReport;

struct TierSelection {
  std::vector<std::string> directories;
  CommandLineSettings settings;
};

struct RecoverOptions {
  TierSelection tiers;
  std::string rescue_folder;  // empty: cairn-rescued in the tier's directory
  bool dry_run = false;
  bool beside_programs = false;
};

struct CheckOptions {
  TierSelection tiers;
  bool repair = false;
};

double seconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// What the segments say is enough for another superblock.
[[noreturn]] void fail(const std::string& directory, const Status& status) {
  const bool has_log = ::access(durable::log_folder_of(directory).c_str(), F_OK) == 0;
  const bool is_missing = status.code() == StatusCode::kNotFound && has_log;
  if (!is_missing && status.code() != StatusCode::kInvalid)
    throw Failure(status.message(), "", kExitRefused);
  throw Failure(is_missing ? directory + ": the superblock is missing" : status.message(),
                fmt::format("`cairn check --repair {}`, then the same again", directory),
                kExitRefused);
}

void report_recovery(const std::string& directory, const RecoveryReport& report, bool dry_run) {
  std::uint64_t kept = 0;
  std::uint64_t bytes = 0;
  for (const RecoveredFile& file : report.files) {
    const std::string text = text_of(file, dry_run);
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

// A machine that has started anew may lack what a node needs, and the tier is there all the same.
NodeConfig configured_node(const CommandLineSettings& settings) {
  try {
    return resolve_configuration(settings).node;
  } catch (const Failure& failure) {
    throw Failure(failure.what(), "name the tier's directory instead: `cairn recover DIR`");
  }
}

// Those that were named, else that of the configuration.
std::vector<std::string> directories_of(const TierSelection& tiers) {
  if (!tiers.directories.empty() && !tiers.settings.config_file.empty())
    throw Failure("directories and a configuration are named", "leave one of them out");
  if (!tiers.directories.empty()) return tiers.directories;
  const NodeConfig node = configured_node(tiers.settings);
  const size_t durable = durable_tier_of(node);
  if (durable == node.tiers.size())
    throw Failure("no directory is named, and the configuration has no durable tier",
                  "name the tier's directory, or a configuration that has it: --config FILE");
  return {node.tiers[durable].directory};
}

void add_tiers(CLI::App& app, TierSelection& tiers) {
  app.add_option("directory", tiers.directories,
                 "Directories of durable tiers (default: that of the configuration)")
      ->type_name("DIR");
  add_text(app, "--config", tiers.settings.config_file, "YAML file (docs/configuration.md)",
           "FILE");
}

// One after the other, also past one that fails. Returns: the worst exit status.
int for_each(const TierSelection& tiers, const std::function<int(const std::string&)>& work) {
  int worst = kExitOk;
  for (const std::string& directory : directories_of(tiers))
    worst = std::max(worst, exit_status_of([&] { return work(directory); }));
  return worst;
}

int recover_tier(const std::string& directory, const RecoverOptions& options) {
  durable::RecoveryOptions how;
  how.dry_run = options.dry_run;
  how.beside_programs = options.beside_programs;
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
  if (!report) fail(directory, report.status());
  report_recovery(directory, *report, options.dry_run);
  return report->is_complete() ? kExitOk : kExitNotStored;
}

int check_tier(const std::string& directory, const CheckOptions& options) {
  auto storage = durable::open_directory_storage(directory, durable::FolderWanted::kExisting);
  if (!storage) fail(directory, storage.status());
  auto report = durable::check_log(
      **storage, options.repair ? durable::CheckWhat::kRepair : durable::CheckWhat::kLook);
  if (!report) fail(directory, report.status());
  for (const std::string& problem : report->problems) say(directory + ": " + problem);
  for (const std::string& repaired : report->repaired) say(directory + ": " + repaired);
  print(fmt::format("{}: {} segments, {} records with {}, {} spare segments{}\n", directory,
                    report->segments, report->scan.records, format_size(report->scan.bytes),
                    report->spare, report->scan.is_clean_end ? ", closed in order" : ""));
  return report->problems.empty() ? kExitOk : kExitNotStored;
}

}  // namespace

int command_recover(const Arguments& arguments) {
  CLI::App app(
      "Brings what a durable tier holds to the backing store, after the machine or the node died.",
      "cairn recover");
  RecoverOptions options;
  add_tiers(app, options.tiers);
  app.add_flag("--dry-run", options.dry_run, "Only say what would be done");
  app.add_flag("--beside-programs", options.beside_programs,
               "Although programs of the dead node still run: they write to no file any more");
  add_text(app, "--rescue", options.rescue_folder,
           "Save files whose place fails in FOLDER (default: cairn-rescued in DIR, for files that "
           "have no place any more)",
           "FOLDER");
  app.footer(
      "A file that somebody else has changed since stays as it is, and what was recovered lies\n"
      "beside it as NAME.cairn-recovered. The command may be killed and run again at any time.\n\n"
      "Exit status: 74 when something is not at its place; of several directories, the worst.\n\n"
      "Example:\n  cairn recover /local/nvme");
  parse(app, arguments);
  return for_each(options.tiers,
                  [&](const std::string& directory) { return recover_tier(directory, options); });
}

int command_check(const Arguments& arguments) {
  CLI::App app("Verifies durable tiers at rest: each record of their logs.", "cairn check");
  CheckOptions options;
  add_tiers(app, options.tiers);
  app.add_flag("--repair", options.repair,
               "Make a lost superblock again from the segments, and clear a torn end");
  app.footer("Exit status: 74 when something is damaged.\n\nExample:\n  cairn check /local/nvme");
  parse(app, arguments);
  return for_each(options.tiers,
                  [&](const std::string& directory) { return check_tier(directory, options); });
}

}  // namespace cairn::cli
