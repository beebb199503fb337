// SPDX-License-Identifier: Apache-2.0
//
// Alternating compute and I/O (Hermes, JCST 35(1) 2020, figure 8): all processes compute, then each
// writes a new file, phase after phase.
//   alternating DIRECTORY --processes 2 --phases 16 --bytes 64M --compute-ms 200 [--request 1M]
//   alternating DIRECTORY ... --check 1       reads all files back and compares, writes nothing
// --bytes are per process and phase. The caller chooses --compute-ms as a ratio of the time that a
// phase's bytes need on the slow device. Computing is sleeping (team.h). Prints {"io_ns",
// "wall_ns", "write_ns", "read_ns"}.
#include "team.h"
#include "timed_file.h"

namespace {

struct Plan {
  std::string directory;
  unsigned processes = 0;
  unsigned phases = 0;
  uint64_t bytes = 0;
  uint64_t compute_ms = 0;
  uint64_t request = 0;

  std::string path(unsigned process, unsigned phase) const {
    return directory + "/phase" + std::to_string(phase) + "." + std::to_string(process);
  }
  uint64_t start(unsigned process, unsigned phase) const {
    return worker::content_start(process * phases + phase);
  }
};

void write_phases(const Plan& plan, const worker::Content& content, const worker::Team& team,
                  unsigned process) {
  for (unsigned phase = 0; phase < plan.phases; ++phase) {
    worker::Team::compute(plan.compute_ms);
    // A parallel program's phase begins when all have computed, and the next when all have written.
    team.wait_for_all();
    {
      worker::TimedFile file(plan.path(process, phase), O_WRONLY | O_CREAT | O_TRUNC,
                             &team.times(process, phase).write_ns);
      file.write(content, plan.start(process, phase), 0, plan.bytes, plan.request);
    }
    team.wait_for_all();
  }
}

void check_files(const Plan& plan, const worker::Content& content) {
  int64_t elapsed_ns = 0;
  for (unsigned process = 0; process < plan.processes; ++process) {
    for (unsigned phase = 0; phase < plan.phases; ++phase) {
      worker::TimedFile file(plan.path(process, phase), O_RDONLY, &elapsed_ns);
      file.require_size(plan.bytes);
      file.read(content, plan.start(process, phase), 0, plan.bytes, plan.request);
    }
  }
}

}  // namespace

int main(int count, char** words) {
  worker::Options options(count, words);
  Plan plan{.directory = options.positional(0),
            .processes = static_cast<unsigned>(options.number("--processes", 2)),
            .phases = static_cast<unsigned>(options.number("--phases", 16)),
            .bytes = options.number("--bytes", 64 << 20),
            .compute_ms = options.number("--compute-ms", 200),
            .request = options.number("--request", 1 << 20)};
  worker::Content content(0);
  if (options.number("--check", 0) != 0) {
    check_files(plan, content);
    printf("{}\n");
    return 0;
  }
  worker::Team team(plan.processes, plan.phases);
  team.run([&](unsigned process) { write_phases(plan, content, team, process); });
  team.print();
  return 0;
}
