// SPDX-License-Identifier: Apache-2.0
//
// Repetitive reads (Hermes, JCST 35(1) 2020, figure 9): a data set is written once, large cold
// files with small hot files between them, and then read in rounds. A round scans one part of the
// cold files and then reads every hot file once, in an order of its own.
//   repetitive DIRECTORY --processes 2 --hot-files 800 --hot-bytes 128K --cold-files 8 --cold-bytes
//   32M
//              --rounds 16 --cold-rounds 8 [--drop-caches 1 [--sync 1]] [--request 1M]
//   repetitive DIRECTORY ... --check 1       reads all files back and compares, writes nothing
// The cold files are scanned once in every --cold-rounds rounds, so that hot files are read
// --rounds times and cold ones --rounds / --cold-rounds times. Files are dealt out to the
// processes. With --drop-caches the kernel's caches are emptied before every round (root): reads
// then come from storage, or from a buffer elsewhere. Every byte that is read is compared. Prints
// {"io_ns", "wall_ns", "write_ns", "read_ns"}.
#include "team.h"
#include "timed_file.h"

namespace {

using worker::TimedFile;

struct Plan {
  std::string directory;
  unsigned processes = 0;
  uint64_t hot_files = 0;
  uint64_t hot_bytes = 0;
  uint64_t cold_files = 0;
  uint64_t cold_bytes = 0;
  unsigned rounds = 0;
  unsigned cold_rounds = 0;
  uint64_t request = 0;
  bool drop_caches = false;
  bool sync_first = false;

  std::string hot_path(uint64_t file) const { return directory + "/hot." + std::to_string(file); }
  std::string cold_path(uint64_t file) const { return directory + "/cold." + std::to_string(file); }
  uint64_t hot_start(uint64_t file) const { return worker::content_start(cold_files + file); }
};

void write_hot(const Plan& plan, const worker::Content& content, uint64_t file, int64_t* elapsed) {
  TimedFile(plan.hot_path(file), O_WRONLY | O_CREAT | O_TRUNC, elapsed)
      .write(content, plan.hot_start(file), 0, plan.hot_bytes, plan.request);
}

// Hot files lie between cold ones in time, so that no order of arrival favours either kind.
void write_files(const Plan& plan, const worker::Content& content, unsigned process,
                 int64_t* elapsed_ns) {
  uint64_t next_hot = process;
  for (uint64_t cold = process; cold < plan.cold_files; cold += plan.processes) {
    TimedFile(plan.cold_path(cold), O_WRONLY | O_CREAT | O_TRUNC, elapsed_ns)
        .write(content, worker::content_start(cold), 0, plan.cold_bytes, plan.request);
    uint64_t due = plan.hot_files * (cold + plan.processes) / plan.cold_files;
    for (; next_hot < std::min(due, plan.hot_files); next_hot += plan.processes) {
      write_hot(plan, content, next_hot, elapsed_ns);
    }
  }
  for (; next_hot < plan.hot_files; next_hot += plan.processes) {
    write_hot(plan, content, next_hot, elapsed_ns);
  }
}

// The cold files of one process are one long range, of which a round reads its share, file after
// file.
void scan_cold(const Plan& plan, const worker::Content& content, unsigned process, unsigned round,
               int64_t* elapsed_ns) {
  uint64_t own_files = plan.cold_files / plan.processes;
  uint64_t total = own_files * plan.cold_bytes;
  unsigned part = round % plan.cold_rounds;
  uint64_t position = total * part / plan.cold_rounds;
  uint64_t end = total * (part + 1) / plan.cold_rounds;
  while (position < end) {
    uint64_t cold = process + position / plan.cold_bytes * plan.processes;
    uint64_t offset = position % plan.cold_bytes;
    uint64_t length = std::min(end - position, plan.cold_bytes - offset);
    TimedFile(plan.cold_path(cold), O_RDONLY, elapsed_ns)
        .read(content, worker::content_start(cold), offset, length, plan.request);
    position += length;
  }
}

void read_hot(const Plan& plan, const worker::Content& content, uint64_t file, int64_t* elapsed) {
  TimedFile(plan.hot_path(file), O_RDONLY, elapsed)
      .read(content, plan.hot_start(file), 0, plan.hot_bytes, plan.request);
}

void read_hot_files(const Plan& plan, const worker::Content& content, unsigned process,
                    unsigned round, int64_t* elapsed_ns) {
  std::vector<uint64_t> files;
  for (uint64_t file = process; file < plan.hot_files; file += plan.processes) {
    files.push_back(file);
  }
  worker::Random random(1000 * uint64_t{round} + process + 1);
  for (size_t i = files.size(); i > 1; --i) std::swap(files[i - 1], files[random.below(i)]);
  for (uint64_t file : files) read_hot(plan, content, file, elapsed_ns);
}

void run_process(const Plan& plan, const worker::Content& content, const worker::Team& team,
                 unsigned process) {
  write_files(plan, content, process, &team.times(process, 0).write_ns);
  for (unsigned round = 0; round < plan.rounds; ++round) {
    if (plan.drop_caches) team.drop_caches(process, plan.sync_first);
    team.wait_for_all();
    int64_t* elapsed_ns = &team.times(process, round + 1).read_ns;
    scan_cold(plan, content, process, round, elapsed_ns);
    read_hot_files(plan, content, process, round, elapsed_ns);
    team.wait_for_all();
  }
}

void check_files(const Plan& plan, const worker::Content& content) {
  int64_t elapsed_ns = 0;
  for (uint64_t cold = 0; cold < plan.cold_files; ++cold) {
    TimedFile file(plan.cold_path(cold), O_RDONLY, &elapsed_ns);
    file.require_size(plan.cold_bytes);
    file.read(content, worker::content_start(cold), 0, plan.cold_bytes, plan.request);
  }
  for (uint64_t hot = 0; hot < plan.hot_files; ++hot) {
    TimedFile file(plan.hot_path(hot), O_RDONLY, &elapsed_ns);
    file.require_size(plan.hot_bytes);
    file.read(content, plan.hot_start(hot), 0, plan.hot_bytes, plan.request);
  }
}

}  // namespace

int main(int count, char** words) {
  worker::Options options(count, words);
  Plan plan{.directory = options.positional(0),
            .processes = static_cast<unsigned>(options.number("--processes", 2)),
            .hot_files = options.number("--hot-files", 800),
            .hot_bytes = options.number("--hot-bytes", 128 << 10),
            .cold_files = options.number("--cold-files", 8),
            .cold_bytes = options.number("--cold-bytes", 32 << 20),
            .rounds = static_cast<unsigned>(options.number("--rounds", 1)),
            .cold_rounds = static_cast<unsigned>(options.number("--cold-rounds", 1)),
            .request = options.number("--request", 1 << 20),
            .drop_caches = options.number("--drop-caches", 0) != 0,
            .sync_first = options.number("--sync", 0) != 0};
  if (plan.cold_files == 0 || plan.cold_files % plan.processes != 0) {
    worker::fail("--cold-files must be a multiple of --processes");
  }
  worker::Content content(0);
  if (options.number("--check", 0) != 0) {
    check_files(plan, content);
    printf("{}\n");
    return 0;
  }
  worker::Team team(plan.processes, plan.rounds + 1);
  team.run([&](unsigned process) { run_process(plan, content, team, process); });
  team.print();
  return 0;
}
