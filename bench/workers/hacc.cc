// SPDX-License-Identifier: Apache-2.0
//
// Writes and reads back particles as the HACC I/O kernel does (Hermes, JCST 35(1) 2020, figure 11):
// nine variables, 38 bytes per particle: xx yy zz vx vy vz phi (float), pid (int64), mask (int16).
//   hacc DIRECTORY --processes 2 --bytes 256M [--layout process-files|shared] [--record 1024]
//        [--drop-caches 1 [--sync 1]]
//   hacc DIRECTORY ... --check 1       reads everything back and compares, writes nothing
// --bytes are per process. process-files: one file per process, each variable contiguous, in large
// requests. shared: one file; within each variable, records of --record particles of the processes
// alternate (a strided view), and every record is one request: 4 KiB for a float variable at the
// default. With --drop-caches the kernel's caches are emptied between writing and reading (root).
// All that is read is compared. Prints {"io_ns", "wall_ns", "write_ns", "read_ns"}.
#include "team.h"
#include "timed_file.h"

namespace {

using worker::TimedFile;

constexpr uint64_t kWidths[] = {4, 4, 4, 4, 4, 4, 4, 8, 2};
constexpr uint64_t kParticleBytes = 38;
constexpr uint64_t kLargeRequest = worker::Content::kLargestRequest;

enum class Direction { kWrite, kRead };

struct Plan {
  std::string directory;
  unsigned processes = 0;
  uint64_t particles = 0;
  uint64_t record = 0;
  bool shared = false;
  bool drop_caches = false;
  bool sync_first = false;

  std::string path(unsigned process) const {
    return directory + (shared ? "/particles" : "/particles." + std::to_string(process));
  }
  uint64_t file_bytes() const { return particles * kParticleBytes * (shared ? processes : 1); }
  uint64_t start(unsigned process) const { return worker::content_start(shared ? 0 : process); }
};

// A range of a file, and where the file's content starts.
struct Section {
  uint64_t start;
  uint64_t offset;
  uint64_t length;
};

void transfer(TimedFile& file, Direction direction, const worker::Content& content,
              const Section& section) {
  const auto [start, offset, length] = section;
  if (direction == Direction::kWrite) {
    file.write(content, start, offset, length, kLargeRequest);
  } else {
    file.read(content, start, offset, length, kLargeRequest);
  }
}

// All nine variables of one process, in the layout of the plan.
void transfer_particles(const Plan& plan, TimedFile& file, Direction direction,
                        const worker::Content& content, unsigned process) {
  uint64_t start = plan.start(process);
  uint64_t section = 0;
  for (uint64_t width : kWidths) {
    uint64_t own_bytes = plan.particles * width;
    if (!plan.shared) {
      transfer(file, direction, content, {start, section, own_bytes});
      section += own_bytes;
      continue;
    }
    uint64_t record_bytes = plan.record * width;
    for (uint64_t record = 0; record < plan.particles / plan.record; ++record) {
      uint64_t place = record * plan.processes + process;
      transfer(file, direction, content, {start, section + place * record_bytes, record_bytes});
    }
    section += own_bytes * plan.processes;
  }
}

void run_process(const Plan& plan, const worker::Content& content, const worker::Team& team,
                 unsigned process) {
  int64_t* write_ns = &team.times(process, 0).write_ns;
  // A shared file is created by one process, as a collective open does.
  if (process == 0) TimedFile(plan.path(0), O_WRONLY | O_CREAT | O_TRUNC, write_ns);
  team.wait_for_all();
  {
    TimedFile file(plan.path(process), O_WRONLY | O_CREAT, write_ns);
    transfer_particles(plan, file, Direction::kWrite, content, process);
  }
  if (plan.drop_caches) team.drop_caches(process, plan.sync_first);
  team.wait_for_all();
  TimedFile file(plan.path(process), O_RDONLY, &team.times(process, 1).read_ns);
  transfer_particles(plan, file, Direction::kRead, content, process);
}

void check_files(const Plan& plan, const worker::Content& content) {
  int64_t elapsed_ns = 0;
  for (unsigned process = 0; process < (plan.shared ? 1 : plan.processes); ++process) {
    TimedFile file(plan.path(process), O_RDONLY, &elapsed_ns);
    file.require_size(plan.file_bytes());
    file.read(content, plan.start(process), 0, plan.file_bytes(), kLargeRequest);
  }
}

}  // namespace

int main(int count, char** words) {
  worker::Options options(count, words);
  Plan plan{.directory = options.positional(0),
            .processes = static_cast<unsigned>(options.number("--processes", 2)),
            .record = options.number("--record", 1024),
            .shared = options.text("--layout", "process-files") == "shared",
            .drop_caches = options.number("--drop-caches", 0) != 0,
            .sync_first = options.number("--sync", 0) != 0};
  // Whole records only, so that both layouts hold the same particles.
  plan.particles =
      options.number("--bytes", 256 << 20) / kParticleBytes / plan.record * plan.record;
  if (plan.particles == 0) worker::fail("--bytes is less than one record");
  worker::Content content(0);
  if (options.number("--check", 0) != 0) {
    check_files(plan, content);
    printf("{}\n");
    return 0;
  }
  worker::Team team(plan.processes, 2);
  team.run([&](unsigned process) { run_process(plan, content, team, process); });
  team.print();
  return 0;
}
