// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/advise_command.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cmath>
#include <memory>

#include "cli/advice/advice_history.h"
#include "cli/advice/advice_text.h"
#include "cli/advice/trace_workload.h"
#include "cli/commands/recorded_node.h"
#include "cli/commands/recorded_run.h"
#include "cli/configuration/configuration.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

constexpr const char* kUsage =
    "Usage: cairn advise [OPTIONS] --trace FILE\n"
    "       cairn advise [OPTIONS] --node NAME [--seconds S]\n"
    "       cairn advise [OPTIONS] [--] PROGRAM [ARGUMENTS]\n"
    "       cairn advise --history [--json]";

constexpr double kNodeSeconds = 10;

struct GivenFlags {
  std::vector<std::string> ram;
  std::vector<std::string> tiers;
  std::vector<std::string> buffer;
  std::vector<std::string> target;
  std::vector<std::string> write;
  double fsyncs = -1;
  double seconds = 0;  // 0: not given
  bool history = false;
};

void add_advise_options(CLI::App& app, AdviceWords& words, GivenFlags& given) {
  add_text(app, "--trace", words.trace, "Advise from this trace instead of running a program",
           "FILE");
  add_text(app, "--node", words.node,
           "Advise a running node, from what its programs do while it is recorded", "NAME");
  app.add_option("--seconds", given.seconds, "With --node: how long (default: 10)")
      ->type_name("S")
      ->check(number_between(0.1, 2e6));
  add_text(app, "--store", words.store,
           "A directory of the slow files (default: working directory; with --node, the first that "
           "the node buffers)",
           "DIR");
  add_one(app, "--ram", given.ram, "The memory that Cairn may use (default: half of what is free)",
          "SIZE");
  add_list(app, "--tier", given.tiers,
           "A file tier that Cairn may use; repeatable, fastest first; \"none\" for none",
           "DIR:SIZE[:durable]");
  add_list(app, "--buffer", given.buffer,
           "With PROGRAM: record the files below DIR; repeatable (default: working directory)",
           "DIR");
  add_text(app, "--config", words.settings.config_file, "The configuration that is in use", "FILE");
  add_list(app, "--what-if", words.what_if, kWhatIfHelp, "KEY=VALUE,...");
  add_one(app, "--target", given.target, "Say which memory leaves so much of the I/O time",
          "PERCENT%-of-io-time");
  app.add_option("--fsyncs", given.fsyncs, "How many fsyncs the program calls")
      ->type_name("N")
      ->check(number_between(0.0, 1e12));
  app.add_flag("--history", given.history,
               "What was foretold of the runs with --config FILE of --write, and what they took");
  app.add_flag("--json", words.json, "One JSON object; documented in docs/reference.md");
  add_one(app, "--write", given.write, "Write the configuration to FILE, which must not be there",
          "FILE");
  app.add_flag("--force", words.force, "Let --write replace FILE");
  app.footer(
      "A trace is what `cairn trace record` writes, the text of darshan-dxt-parser, or CSV.\n\n"
      "Exit status: 2 for a trace without accesses, a program without I/O on buffered files, and\n"
      "mistakes in the options; that of the program when it fails.\n\n"
      "Examples:\n"
      "  cairn advise -- ./simulate input.nml\n"
      "  cairn advise --trace job.trace --store /pfs/project --write job.yaml\n"
      "  cairn advise --node job --seconds 60\n"
      "  cairn advise --trace job.trace --what-if ram=4G,nvme=200G\n"
      "  cairn advise --history");
}

void take_flags(const GivenFlags& given, AdviceWords* words) {
  if (!given.ram.empty()) words->settings.flags["ram.capacity"] = given.ram;
  if (!given.tiers.empty()) words->settings.flags["tiers"] = given.tiers;
  if (!given.target.empty()) words->target = given.target.front();
  if (!given.write.empty()) words->write = given.write.front();
  if (!given.write.empty() && words->write.empty())
    throw Failure("--write \"\": no name of a file", "name a file, such as job.yaml");
  if (given.fsyncs >= 0) words->fsyncs = given.fsyncs;
}

void check_node_words(const AdviceWords& words, const GivenFlags& given) {
  if (words.node.empty() && given.seconds > 0)
    throw Failure(
        "--seconds without --node",
        "name a running node, or leave it out: a program and a trace are read to the end");
  if (!words.node.empty() && !words.settings.config_file.empty())
    throw Failure("--node and --config exclude each other", "the node has a configuration");
  if (!words.node.empty() && !given.buffer.empty())
    throw Failure("--node and --buffer exclude each other", "the node says what it buffers");
}

void check_words(const AdviceWords& words, const Arguments& program) {
  const int subjects =
      (words.trace.empty() ? 0 : 1) + (words.node.empty() ? 0 : 1) + (program.empty() ? 0 : 1);
  if (subjects == 0)
    throw Failure("no trace, no node and no program to advise on",
                  "write --trace FILE, --node NAME, or a program after --, such as: cairn advise "
                  "-- ./app");
  if (subjects > 1)
    throw Failure("--trace, --node and a program exclude each other", "leave all but one out");
  struct stat status{};
  if (!words.write.empty() && !words.force && ::lstat(words.write.c_str(), &status) == 0)
    throw Failure(fmt::format("--write {}: the file is there already", printable(words.write)),
                  "name another one, or replace it by --force");
  if (words.force && words.write.empty())
    throw Failure("--force: nothing is written", "give a file by --write as well");
}

void check_history_alone(const AdviceWords& words, const Arguments& program) {
  if (words.trace.empty() && words.node.empty() && program.empty() && words.write.empty()) return;
  throw Failure("--history advises on nothing",
                "leave out the trace, the node, the program and --write");
}

advice::Workload workload_of_run(const AdviceWords& words, const GivenFlags& given,
                                 const Arguments& program) {
  RecordedRun run;
  CommandLineSettings settings = words.settings;
  if (!given.buffer.empty()) settings.flags["buffer.directories"] = given.buffer;
  run.execute(settings, program);
  advice::Workload work = read_workload(run.trace(), program.front());
  if (run.seconds() > 0) {
    work.accesses.run_seconds = run.seconds();
    work.accesses.run_io_seconds = run.io_seconds();
  }
  return work;
}

// The running node to advise, or null. Its configuration and its store count where the words name
// none.
std::unique_ptr<RecordedNode> subject_node(AdviceWords* words) {
  std::unique_ptr<RecordedNode> node;
  if (!words->node.empty()) {
    node = std::make_unique<RecordedNode>(words->node);
    words->settings.config_file = node->config_file();
    const std::vector<std::string>& buffered =
        resolve_configuration(words->settings).node.buffer_directories;
    if (words->store.empty() && !buffered.empty()) words->store = buffered.front();
  }
  if (words->store.empty()) words->store = ".";
  return node;
}

}  // namespace

int command_advise(const Arguments& arguments) {
  CLI::App app("Says whether Cairn helps a program, by how much, and with which configuration.",
               "cairn advise");
  AdviceWords words;
  GivenFlags given;
  add_advise_options(app, words, given);
  const Arguments program = parse_before_program(app, arguments, kUsage);
  take_flags(given, &words);
  if (given.history) {
    check_history_alone(words, program);
    const std::vector<ForetoldRun> runs = AdviceHistory().runs();
    print(words.json ? history_json(runs) : history_text(runs));
    return kExitOk;
  }
  check_words(words, program);
  check_node_words(words, given);
  const std::unique_ptr<RecordedNode> node = subject_node(&words);
  // Mistakes of the options come before a run that may take hours.
  AdviceTold told{.work = {}, .question = question_of(words), .trained = {}, .advice = {}};
  if (node) {
    told.work = node->record(given.seconds > 0 ? given.seconds : kNodeSeconds);
    told.node = node->looked_at();
  } else {
    told.work =
        program.empty() ? read_workload(words.trace) : workload_of_run(words, given, program);
  }
  if (words.fsyncs) told.work.accesses.fsyncs = words.fsyncs;
  // Another store than that of the recording is one that the words have named.
  if (!told.question.store_directory.empty())
    told.question.machine.store.recorded_sync_latency = told.work.accesses.fsync_wait_seconds;
  told.trained = use_trained_devices(told.question.store_directory, told.work,
                                     &told.question.machine, &told.question.wishes);
  told.advice = advice::advise(told.work, told.question.machine, told.question.wishes);
  if (!words.write.empty()) write_advice_config(told, words.write, words.force);
  print(words.json ? advice_json(told) : advice_text(told));
  return kExitOk;
}

}  // namespace cairn::cli
