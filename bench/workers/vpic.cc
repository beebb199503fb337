// SPDX-License-Identifier: Apache-2.0
//
// Writes as VPIC does through parallel HDF5 (Hermes, JCST 35(1) 2020, figure 10): in each step all
// processes write their particles into one file, variable after variable, each process a contiguous
// slab; between the steps they compute.
//   vpic DIRECTORY --processes 2 --steps 16 --bytes 64M --compute-ms 200 [--layout
//   step-files|one-file]
//   vpic DIRECTORY ... --check 1       reads everything back and compares, writes nothing
// --bytes are those of a step, of all processes together. A step occupies, as HDF5 lays out
// contiguous datasets,
//   superblock (2048 bytes) | object header (272) | x[] | object header | y[] | ...
// eight variables of 4 bytes,
// so that no slab is aligned to anything. The first process writes the headers, and the superblock
// once more, with other contents, when the step is complete. With --layout one-file the steps
// follow each other in one file. Computing is sleeping (team.h). Prints {"io_ns", "wall_ns",
// "write_ns", "read_ns"}.
#include "team.h"
#include "timed_file.h"

namespace {

using worker::TimedFile;

// x, y, z, px, py, pz are float, id1 and id2 are int32: VPIC's eight.
constexpr unsigned kVariables = 8;
constexpr uint64_t kValueBytes = 4;
constexpr uint64_t kSuperblockBytes = 2048;
constexpr uint64_t kObjectHeaderBytes = 272;
constexpr uint64_t kRequest = worker::Content::kLargestRequest;

struct Plan {
  std::string directory;
  unsigned processes = 0;
  unsigned steps = 0;
  uint64_t particles_per_process = 0;
  uint64_t compute_ms = 0;
  bool one_file = false;

  uint64_t slab_bytes() const { return particles_per_process * kValueBytes; }
  uint64_t variable_bytes() const { return kObjectHeaderBytes + processes * slab_bytes(); }
  uint64_t step_bytes() const { return kSuperblockBytes + kVariables * variable_bytes(); }

  std::string path(unsigned step) const {
    return directory + "/" + (one_file ? "particles" : "step" + std::to_string(step)) + ".h5";
  }
  uint64_t base(unsigned step) const { return one_file ? step * step_bytes() : 0; }
  uint64_t header(unsigned step, unsigned variable) const {
    return base(step) + kSuperblockBytes + variable * variable_bytes();
  }
  uint64_t slab(unsigned step, unsigned variable, unsigned process) const {
    return header(step, variable) + kObjectHeaderBytes + process * slab_bytes();
  }
  uint64_t start(unsigned step) const { return worker::content_start(one_file ? 0 : step); }
};

struct Contents {
  worker::Content complete{0};
  worker::Content incomplete{1};
};

void create_step(const Plan& plan, const Contents& contents, unsigned step, int64_t* elapsed_ns) {
  int fresh = plan.one_file && step > 0 ? 0 : O_CREAT | O_TRUNC;
  TimedFile file(plan.path(step), O_WRONLY | fresh, elapsed_ns);
  file.write(contents.incomplete, plan.start(step), plan.base(step), kSuperblockBytes, kRequest);
}

void write_slabs(const Plan& plan, const Contents& contents, unsigned step, unsigned process,
                 int64_t* elapsed_ns) {
  TimedFile file(plan.path(step), O_WRONLY, elapsed_ns);
  for (unsigned variable = 0; variable < kVariables; ++variable) {
    if (process == 0) {
      file.write(contents.complete, plan.start(step), plan.header(step, variable),
                 kObjectHeaderBytes, kRequest);
    }
    file.write(contents.complete, plan.start(step), plan.slab(step, variable, process),
               plan.slab_bytes(), kRequest);
  }
}

void finish_step(const Plan& plan, const Contents& contents, unsigned step, int64_t* elapsed_ns) {
  TimedFile file(plan.path(step), O_WRONLY, elapsed_ns);
  file.write(contents.complete, plan.start(step), plan.base(step), kSuperblockBytes, kRequest);
}

void run_process(const Plan& plan, const Contents& contents, const worker::Team& team,
                 unsigned process) {
  for (unsigned step = 0; step < plan.steps; ++step) {
    int64_t* elapsed_ns = &team.times(process, step).write_ns;
    // Between the steps: the state that the program starts from is the first one written.
    if (step > 0) worker::Team::compute(plan.compute_ms);
    team.wait_for_all();
    if (process == 0) create_step(plan, contents, step, elapsed_ns);
    team.wait_for_all();
    write_slabs(plan, contents, step, process, elapsed_ns);
    team.wait_for_all();
    if (process == 0) finish_step(plan, contents, step, elapsed_ns);
  }
}

void check_files(const Plan& plan, const Contents& contents) {
  int64_t elapsed_ns = 0;
  for (unsigned step = 0; step < plan.steps; ++step) {
    TimedFile file(plan.path(step), O_RDONLY, &elapsed_ns);
    file.require_size(plan.step_bytes() * (plan.one_file ? plan.steps : 1));
    file.read(contents.complete, plan.start(step), plan.base(step), plan.step_bytes(), kRequest);
  }
}

}  // namespace

int main(int count, char** words) {
  worker::Options options(count, words);
  Plan plan{.directory = options.positional(0),
            .processes = static_cast<unsigned>(options.number("--processes", 2)),
            .steps = static_cast<unsigned>(options.number("--steps", 16)),
            .compute_ms = options.number("--compute-ms", 200),
            .one_file = options.text("--layout", "step-files") == "one-file"};
  plan.particles_per_process =
      options.number("--bytes", 64 << 20) / (kVariables * kValueBytes * plan.processes);
  Contents contents;
  if (options.number("--check", 0) != 0) {
    check_files(plan, contents);
    printf("{}\n");
    return 0;
  }
  worker::Team team(plan.processes, plan.steps);
  team.run([&](unsigned process) { run_process(plan, contents, team, process); });
  team.print();
  return 0;
}
