// SPDX-License-Identifier: Apache-2.0
#include "cli/run/plain_run.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/launch/program_search.h"
#include "cli/run/node_text.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/paths.h"
#include "cli/terminal/words.h"

extern char** environ;

namespace cairn::cli {
namespace {

// What the variables of a run's options begin with; plain_run_test.cc compares the option table.
constexpr std::array<std::string_view, 9> kOptionVariables = {
    "CAIRN_ADVICE_",          "CAIRN_BUFFER_",       "CAIRN_CONFIG",
    "CAIRN_DURABILITY_LEVEL", "CAIRN_FLUSH_TRIGGER", "CAIRN_GRACE",
    "CAIRN_PLACEMENT_POLICY", "CAIRN_REPORT",        "CAIRN_SCHEMA"};

bool environment_may_set_options() {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (may_set_option(*entry)) return true;
  }
  return false;
}

// Returns: false when one of them cannot be buffered.
bool add_directories(const std::vector<std::string>& given, std::vector<std::string>* directories) {
  for (const std::string& text : given) {
    std::string path = absolute_path(text);
    if (!buffering_problem(text, path).empty()) return false;
    if (std::find(directories->begin(), directories->end(), path) == directories->end())
      directories->push_back(std::move(path));
  }
  return true;
}

// The steps, and so the mistake that is found first, are those of `cairn run` (run_command.cc).
std::optional<ProgramRunOptions> prepare(PlainWords words) {
  ProgramRunOptions run;
  FoundProgram program = find_program(words.command_line.front());
  if (program.path.empty()) return std::nullopt;
  run.program_path = std::move(program.path);
  run.preload_library = preload_library_path();
  run.node = select_node(words.node);
  if (!add_directories(words.buffer, &run.buffer_directories)) return std::nullopt;
  const NodeText node = read_node_text(run.node);
  if (node.has_scratch || (node.has_filter && words.buffer.empty())) return std::nullopt;
  run.exclude = std::move(words.exclude);
  run.report = words.report;
  run.command_line = std::move(words.command_line);
  return run;
}

}  // namespace

bool may_set_option(const char* variable) {
  const std::string_view text = variable;
  return std::any_of(kOptionVariables.begin(), kOptionVariables.end(),
                     [text](std::string_view name) { return text.substr(0, name.size()) == name; });
}

std::optional<PlainWords> take_plain_words(const std::vector<std::string>& words) {
  PlainWords taken;
  if (words.empty() || words.front() != "run") return std::nullopt;
  size_t index = 1;
  while (index < words.size() && words[index].rfind('-', 0) == 0 && words[index] != "--") {
    const std::string& flag = words[index];
    if (flag == "--no-report") {
      // What a repetition means is left to the parser.
      if (!taken.report) return std::nullopt;
      taken.report = false;
      ++index;
      continue;
    }
    if (!is_plain_word(words, index + 1)) return std::nullopt;
    const std::string& value = words[index + 1];
    if (flag == "--node" && taken.node.empty()) {
      taken.node = value;
    } else if (flag == "--buffer") {
      taken.buffer.push_back(value);
    } else if (flag == "--exclude") {
      taken.exclude.push_back(value);
    } else {
      return std::nullopt;
    }
    index += 2;
  }
  if (index < words.size() && words[index] == "--") ++index;
  // The parser takes other words before the program, and runs with a node of their own.
  if (taken.node.empty() || index >= words.size() || words[index].empty()) return std::nullopt;
  taken.command_line.assign(words.begin() + static_cast<ptrdiff_t>(index), words.end());
  return taken;
}

std::optional<ProgramRunOptions> find_plain_run(const std::vector<std::string>& words) {
  std::optional<PlainWords> taken = take_plain_words(words);
  if (!taken || environment_may_set_options()) return std::nullopt;
  try {
    return prepare(*std::move(taken));
  } catch (const Failure&) {
    return std::nullopt;
  }
}

int run_plainly(const ProgramRunOptions& options) {
  SignalWatch signals;
  ProgramRun run(options, signals);
  run.begin();
  return run.execute();
}

}  // namespace cairn::cli
