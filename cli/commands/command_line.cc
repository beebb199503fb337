// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/command_line.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Option.hpp>
#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/nearest_name.h"
#include "cli/arguments/arguments.h"
#include "cli/commands/advise_command.h"
#include "cli/commands/arrays_command.h"
#include "cli/commands/config_command.h"
#include "cli/commands/doctor_command.h"
#include "cli/commands/durable_commands.h"
#include "cli/commands/file_commands.h"
#include "cli/commands/learning_commands.h"
#include "cli/commands/node_commands.h"
#include "cli/commands/node_service_command.h"
#include "cli/commands/picture.h"
#include "cli/commands/rescue_command.h"
#include "cli/commands/run_command.h"
#include "cli/commands/schema_command.h"
#include "cli/commands/sync_command.h"
#include "cli/configuration/setting_flags.h"
#include "cli/profile/profile_command.h"
#include "cli/report/report_command.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/terminal/paths.h"
#include "cli/top/top_command.h"
#include "cli/trace/trace_command.h"
#include "service/profiler/device_measure.h"

namespace cairn::cli {
namespace {

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(const Arguments& arguments);
  bool hidden = false;
};

int command_run(const Arguments& arguments) {
  RunOptions options;
  CLI::App app("Runs a program with its file I/O buffered; ends when all its data is stored.",
               "cairn run");
  add_text(app, "--node", options.node, "Use the running node NAME instead of a private one",
           "NAME");
  add_setting_flags(app, options.settings, FlagOffer::kByRun);
  app.add_flag("--allow-io-uring", options.allow_io_uring,
               "Let the program use io_uring, and do not set no_new_privs")
      ->group("Advanced");
  app.add_option(
         "--arrays", options.arrays,
         "Keep unpacked chunks of HDF5 datasets: auto, on (an error where it cannot be), off")
      ->type_name("WHETHER")
      ->check(CLI::IsMember({"off", "auto", "on"}))
      ->group("Advanced");
  app.add_option("--weight", options.weight,
                 "Share of tiers and backing store beside other runs, which have 100")
      ->type_name("NUMBER")
      ->check(CLI::Range(1, 10000))
      ->group("Advanced");
  add_list(app, "--reserve", options.reserve,
           "Guarantee the run SIZE of the fastest tier, or of TIER; repeatable", "[TIER=]SIZE")
      ->group("Advanced");
  add_list(app, "--array", options.array,
           "A dataset is read in chunks with ghost zones: 'FILE:/DATASET chunk=[N,...] "
           "ghost=[N,...]'; repeatable",
           "HINT")
      ->group("Advanced");
  add_text(app, "--report", options.report,
           "Write what the run did to FILE, as a page for a browser; `cairn report` shows it later",
           "FILE.html");
  app.add_flag("--force", options.force, "With --report: replace FILE although it is not a report");
  add_text(app, "--report-json", options.report_json,
           "Write the report to FILE as JSON; with --report, all data of the page", "FILE");
  app.add_flag("-v,--verbose", options.verbose, "Say which node starts");
  app.footer(
      "Exit status: that of the program (128 + signal when a signal killed it), 126 or 127 when "
      "it\n"
      "does not start, 74 when some data is not stored, 2 when Cairn refuses to start.\n\n"
      "Examples:\n"
      "  cairn run -- ./simulate input.nml\n"
      "  cairn run --buffer /pfs/project --exclude '*.log' --tier /local:200G -- ./simulate\n"
      "  cairn run --node job -- python3 analyse.py");
  options.command_line =
      parse_before_program(app, arguments, "Usage: cairn run [OPTIONS] [--] PROGRAM [ARGUMENTS]");
  if (options.force && options.report.empty())
    throw Failure("--force without --report", "name the page: --report FILE.html --force");
  if (options.command_line.empty()) {
    throw Failure("no program to run", "write it after --, such as: cairn run -- ./app input");
  }
  return run_program(options);
}

int command_up(const Arguments& arguments) {
  CLI::App app("Starts a node that serves several runs, and returns when it is ready.", "cairn up");
  CommandLineSettings settings;
  add_setting_flags(app, settings, FlagOffer::kByUp);
  add_one(app, "--node", settings.flags["node.name"], "The same as --name", "NAME");
  app.footer(
      "Example:\n"
      "  cairn up --name job --ram 16G --tier /local/scratch:200G\n"
      "  cairn run --node job -- ./simulate && cairn run --node job -- ./analyse\n"
      "  cairn down --node job");
  parse(app, arguments);
  return start_node(settings);
}

int command_down(const Arguments& arguments) {
  CLI::App app(
      "Stores all data of a node and ends it; the node stays while some data is not stored.",
      "cairn down");
  StopOptions options;
  add_text(app, "--node,--name", options.node, "The node (default: the only one)", "NAME");
  app.add_flag("--discard", options.discard, "End it in any case; data that is not stored is lost");
  app.footer("Exit status: 74 when some data is not stored.\n\nExample:\n  cairn down --node job");
  parse(app, arguments);
  return stop_node(options);
}

int command_status(const Arguments& arguments) {
  CLI::App app("Shows the tiers, rates, clients, unstored files and errors of a node.",
               "cairn status");
  StatusOptions options;
  add_text(app, "--node", options.node, "The node (default: that of this run, else the only one)",
           "NAME");
  app.add_flag("--json", options.json, "As JSON; stable, documented in docs/reference.md");
  app.footer("Example:\n  cairn status --node job --json | jq .backing.dirty_bytes");
  parse(app, arguments);
  return show_status(options);
}

int command_drain(const Arguments& arguments) {
  CLI::App app("Stores all data that a node holds, and returns when that is done.", "cairn drain");
  DrainOptions options;
  double timeout_seconds = -1;
  add_text(app, "--node", options.node, "The node (default: that of this run, else the only one)",
           "NAME");
  app.add_option("--timeout", timeout_seconds, "Give up waiting after SECONDS")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e9));
  app.footer(
      "Exit status: 74 when some data is not stored.\n\nExample:\n  cairn drain --node run-4711");
  parse(app, arguments);
  if (timeout_seconds >= 0) options.timeout_seconds = timeout_seconds;
  return drain_node(options);
}

int command_rescue(const Arguments& arguments) {
  CLI::App app("Puts what a rescue could not store in its place, and removes it from DIRECTORY.",
               "cairn rescue");
  RescueOptions options;
  app.add_option("directory", options.directory, "The directory that the rescue has named")
      ->type_name("DIRECTORY")
      ->required();
  app.add_flag("--dry-run", options.dry_run, "Say what would be done");
  app.footer(
      "A file that was changed or replaced since is left alone. May be run again.\n\n"
      "Exit status: 74 when something is left in DIRECTORY, or is lost because the rescue could\n"
      "not even save it; --dry-run ends with what it would be. 2 when DIRECTORY has no list that\n"
      "can be read.\n\n"
      "Example:\n  cairn rescue ~/.local/state/cairn/rescue/run-4711-20260101-120000");
  parse(app, arguments);
  return finish_rescue(options);
}

int command_explain(const Arguments& arguments) {
  CLI::App app("Shows which byte ranges of a file are in which tier, in which state, and why.",
               "cairn explain");
  ExplainOptions options;
  app.add_option("path", options.path, "The file")->type_name("PATH")->required();
  add_text(app, "--node", options.node, "The node (default: that of this run, else the only one)",
           "NAME");
  add_text(app, "--dataset", options.dataset,
           "How reads of this dataset of an HDF5 file are served, and why not", "NAME");
  app.add_flag("--json", options.json, "The service's reply as JSON");
  app.footer(
      "Examples:\n"
      "  cairn explain results/step7.h5\n"
      "  cairn explain results/step7.h5 --dataset /fields/density");
  parse(app, arguments);
  return explain_file(options);
}

int command_set(const Arguments& arguments) {
  CLI::App app("Changes how a running node treats files that programs open from now on.",
               "cairn set");
  SetOptions options;
  std::vector<std::string> words;
  app.add_option("words", words, "Files, directories or quoted patterns, then key=value")
      ->type_name("PATH... KEY=VALUE...");
  add_files(app, options.files);
  app.footer(
      "Keys:\n"
      "  mode      persistent-async, persistent-sync, bypass\n"
      "  trigger   periodic, per-operation, per-file, on-exit\n"
      "  durability  node, store: what a finished fsync survives\n"
      "  policy    a placement policy\n"
      "  tier      the tier that new blocks go to first\n"
      "  pinned    yes or no\n"
      "  priority  0 (leaves a full tier first) to 7; others have 4\n"
      "  prefetch  normal, sequential, random, will-need, none\n"
      "  reserve   SIZE or TIER:SIZE, guaranteed to all files of a PATH together;\n"
      "            0 ends it\n\n"
      "Examples:\n"
      "  cairn set --node job '*.log' mode=bypass\n"
      "  cairn set --node job /pfs/results trigger=on-exit priority=1\n"
      "  cairn set --node job '/pfs/index/*' reserve=2G");
  parse(app, arguments);
  for (const std::string& word : words) {
    const bool is_property = word.find('=') != std::string::npos && word.find('/') > word.find('=');
    (is_property ? options.properties : options.files.paths).push_back(word);
  }
  if (options.properties.empty())
    throw Failure("nothing to set",
                  "write a key and its value, such as: cairn set '*.log' mode=bypass");
  return set_properties(options);
}

int pin_or_unpin(const Arguments& arguments, bool pinned) {
  CLI::App app(pinned ? "Keeps files in their tier; with --tier, brings them there first."
                      : "Lets pinned files leave their tier again.",
               pinned ? "cairn pin" : "cairn unpin");
  PinOptions options;
  options.pinned = pinned;
  app.add_option("paths", options.files.paths, "Files, directories or quoted patterns")
      ->type_name("PATH...");
  add_files(app, options.files);
  if (pinned) add_text(app, "--tier", options.tier, "The tier that keeps them", "TIER");
  app.footer(pinned ? "Example:\n  cairn pin --node job --tier ram tables/eos.h5"
                    : "Example:\n  cairn unpin --node job tables/eos.h5");
  parse(app, arguments);
  return pin_files(options);
}

int command_pin(const Arguments& arguments) { return pin_or_unpin(arguments, true); }
int command_unpin(const Arguments& arguments) { return pin_or_unpin(arguments, false); }

int stage(const Arguments& arguments, bool in) {
  CLI::App app(in ? "Reads files into a tier before a program asks for them."
                  : "Stores files and takes them out of the tiers.",
               in ? "cairn stage-in" : "cairn stage-out");
  StageOptions options;
  options.in = in;
  app.add_option("paths", options.files.paths, "Files or directories")->type_name("PATH...");
  add_files(app, options.files);
  if (in)
    add_text(app, "--tier", options.tier,
             "The tier that takes them (default: the placement policy decides)", "TIER");
  app.footer(in ? "Exit status: 74 when a file is not staged.\n\n"
                  "Example:\n  cairn stage-in --node job --tier nvme inputs/"
                : "Exit status: 74 when a file is not stored.\n\n"
                  "Example:\n  cairn stage-out --node job results/step7.h5");
  parse(app, arguments);
  return stage_files(options);
}

int command_stage_in(const Arguments& arguments) { return stage(arguments, true); }
int command_stage_out(const Arguments& arguments) { return stage(arguments, false); }

int command_doctor(const Arguments& arguments) {
  CLI::App app(
      "Checks whether the machine is ready and, with a program, whether Cairn can buffer its "
      "files.",
      "cairn doctor");
  app.footer(
      "Exit status: 1 when something is BAD.\n\n"
      "Examples:\n  cairn doctor\n  cairn doctor ./simulate");
  return run_doctor(parse_before_program(app, arguments, "Usage: cairn doctor [--] [PROGRAM]"));
}

int command_profile(const Arguments& arguments) {
  CLI::App app(
      "Measures the memory, the devices of the tiers and that of the working directory. Nodes "
      "place "
      "data by the results.",
      "cairn profile");
  ProfileOptions options;
  app.add_option("directory", options.directories,
                 "Measure the devices of these directories instead")
      ->type_name("DIR");
  app.add_option("--seconds", options.seconds, "Time for each device (default: 7)")
      ->type_name("SECONDS")
      ->check(CLI::Range(profiler::kMeasureSecondsMin, profiler::kMeasureSecondsMax));
  add_text(app, "--space", options.space,
           "Size of the test file, at most a quarter of the free space (default: 256M; to train, "
           "at most 4G)",
           "SIZE");
  add_text(app, "--config", options.config_file, "YAML file that names the tiers", "FILE");
  app.add_flag("--json", options.json, "As JSON; documented in docs/reference.md");
  app.add_flag("--list", options.list, "Measure nothing; show the devices and their known figures");
  app.add_flag("--forget", options.forget,
               "Measure nothing; remove the figures of the directories, or all figures");
  app.add_flag("--train", options.train,
               "Fit models of reads and writes to experiments on the devices of the directories "
               "(default: the working directory); goes on where it was interrupted");
  add_text(app, "--minutes", options.minutes, "Time for each training (default: 10)", "MINUTES");
  add_text(app, "--png", options.picture,
           "Draw how the trained models fit to this file as well (python3 with matplotlib)",
           "FILE");
  options.draw = [&options](const std::string& lines) {
    draw_picture("training.py", lines, absolute_path(options.picture));
  };
  app.footer(
      "Exit status: 2 when Cairn cannot measure a place; it measures the others all the same.\n\n"
      "Examples:\n"
      "  cairn profile\n"
      "  cairn profile /local/scratch /pfs/project\n"
      "  cairn profile --train --minutes 30 /local/scratch\n"
      "  cairn profile --list");
  parse(app, arguments);
  return run_profile(options);
}

int command_report_with_pictures(const Arguments& arguments) {
  return command_report(arguments, [](const std::string& lines, const std::string& directory) {
    draw_picture("report.py", lines, absolute_path(directory));
  });
}

int command_schema(const Arguments& arguments) {
  const std::string verb = arguments.empty() ? "" : arguments.front();
  CLI::App app("Checks schemas (rules for files, docs/schemas.md).", "cairn schema check");
  std::vector<std::string> files;
  app.add_option("file", files, "The schemas, XML or YAML")->type_name("FILE")->required();
  app.footer(
      "Exit status: 2 when one of them has a mistake. The node checks what depends on it, such as\n"
      "the names of its tiers, when it starts.\n\n"
      "Example:\n  cairn schema check job.xml more.yaml");
  if (verb == "--help" || verb == "-h") parse(app, {"--help"});
  if (verb != "check") {
    throw Failure(
        verb.empty() ? "schema: check?" : fmt::format("schema: unknown word \"{}\"", verb),
        "`cairn schema check FILE...` says whether schemas are in order");
  }
  parse(app, Arguments(arguments.begin() + 1, arguments.end()));
  return check_schemas(files);
}

int command_version(const Arguments& arguments) {
  CLI::App app("Prints the version.", "cairn version");
  app.footer("Example:\n  cairn version");
  parse(app, arguments);
  print(fmt::format("cairn {}\n", CAIRN_VERSION));
  return kExitOk;
}

int command_node_service(const Arguments& arguments) {
  CLI::App app("The node service itself; started by `cairn run` and `cairn up`.",
               "cairn node-service");
  NodeServiceOptions options;
  add_text(app, "--name", options.name, "Name of the node", "NAME");
  add_text(app, "--config", options.config_file, "The resolved configuration", "FILE");
  app.add_option("--ready-fd", options.ready_descriptor, "The descriptor for \"ready\"")
      ->type_name("FD");
  app.add_option("--succeed", options.kept_memory, "The descriptor of what a dead service has left")
      ->type_name("FD");
  parse(app, arguments);
  return run_node_service(options);
}

constexpr Command kCommands[] = {
    {"run", "run a program with its file I/O buffered", command_run},
    {"up", "start a node that serves several runs", command_up},
    {"down", "store everything and end a node", command_down},
    {"status", "show tiers, rates, clients, unstored files and errors", command_status},
    {"top", "the same live: bars, rates, runs, files; or as CSV", command_top},
    {"report", "show what a recorded run did", command_report_with_pictures},
    {"drain", "store everything now and wait", command_drain},
    {"rescue", "put in its place what a rescue has saved", command_rescue},
    {"explain", "show where the bytes of a file are, and why", command_explain},
    {"declare", "tell the node in which order programs will read", command_declare},
    {"arrays", "show which datasets of an HDF5 file programs read, and what is cached",
     command_arrays},
    {"heatmap", "show which parts of a file programs read most", command_heatmap},
    {"trace", "record accesses of programs, show and replay them", command_trace},
    {"set", "change how a running node treats files", command_set},
    {"pin", "keep files in their tier", command_pin},
    {"unpin", "let files leave their tier again", command_unpin},
    {"stage-in", "read files into a tier before programs ask for them", command_stage_in},
    {"stage-out", "store files and take them out of the tiers", command_stage_out},
    {"sync", "make files durable that other programs have written", command_sync},
    {"doctor", "check the machine, or a program", command_doctor},
    {"advise", "say whether Cairn helps a program, and how to set it up", command_advise},
    {"profile", "measure the devices, list their figures", command_profile},
    {"config", "show the configuration, or the reference of options", command_config},
    {"schema", "check rules for files", command_schema},
    {"recover", "bring what a durable tier holds to the backing store", command_recover},
    {"check", "verify durable tiers at rest", command_check},
    {"version", "print the version", command_version},
    {"node-service", "", command_node_service, true},
    {kSyncHere, "", command_sync_here, true},
};

std::string overview() {
  std::string text =
      "Cairn buffers the file I/O of unmodified programs in the memory and fast disks of the "
      "node.\n\n"
      "Usage: cairn COMMAND [OPTIONS]\n\n";
  for (const Command& command : kCommands) {
    if (!command.hidden) text += fmt::format("  {:<10} {}\n", command.name, command.summary);
  }
  return text +
         "\n`cairn COMMAND --help` explains one and has an example.\n\n"
         "Example:\n  cairn run -- ./simulate input.nml\n";
}

int dispatch(const Arguments& arguments) {
  const std::string name = arguments.empty() ? "" : arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    print(overview());
    return kExitOk;
  }
  if (name == "--version" || name == "-V") return command_version({});
  std::vector<std::string_view> known;
  for (const Command& command : kCommands) {
    if (command.name == name) return command.run(Arguments(arguments.begin() + 1, arguments.end()));
    if (!command.hidden) known.push_back(command.name);
  }
  if (name.empty()) {
    (void)write_fully(2, overview());
    return kExitRefused;
  }
  const std::string_view nearest = nearest_name(name, known);
  throw Failure(fmt::format("unknown command \"{}\"", name),
                nearest.empty() ? std::string("`cairn --help` lists the commands")
                                : fmt::format("did you mean `cairn {}`? `cairn --help` lists the "
                                              "commands",
                                              nearest));
}

}  // namespace

int run_command_line(const std::vector<std::string>& arguments) {
  return exit_status_of([&arguments] { return dispatch(arguments); });
}

}  // namespace cairn::cli
