// SPDX-License-Identifier: Apache-2.0
//
// Random aligned preads or pwrites on a resident file:
//   random_io FILE --mode read|write|check --size 1G --requests 64,4096 [--slices 15]
//             [--slice-ms 20] [--processes 1] [--seed 1]
// Prints {"<request>": {"ns": per operation of the fastest slice, "operations": N}, ...}: the
// fastest, because other work on the machine only ever adds time. With several processes each reads
// for the same wall time and "ns" is wall time per operation of all of them together. Mode check
// compares the content that sequential_write and mode read give a file, and measures nothing.
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>

#include "worker.h"

namespace {

using worker::Content;
using worker::Random;
using worker::require;

constexpr size_t kPage = 4096;
constexpr size_t kPassRequest = 1 << 20;

struct Job {
  int descriptor = -1;
  uint64_t size = 0;
  bool write = false;
  unsigned slices = 5;
  int64_t slice_ns = 0;
  uint64_t seed = 1;
};

// One timed stretch, kept so that a verification can replay which places were written.
struct Slice {
  uint64_t seed;
  uint64_t operations;
  int64_t ns;
};

Slice run_slice(const Job& job, uint64_t request, uint64_t seed, const Content& content,
                char* buffer) {
  Random random(seed);
  uint64_t places = job.size / request;
  // The clock is read once per batch of about 50 us, so that it costs nothing against 50 ns calls.
  uint64_t batch = std::max<uint64_t>(1, 100'000 / (80 + request / 8));
  Slice slice{seed, 0, 0};
  int64_t start = worker::now_ns();
  do {
    for (uint64_t i = 0; i < batch; ++i) {
      uint64_t offset = random.below(places) * request;
      ssize_t done = job.write ? pwrite(job.descriptor, content.at(offset), request,
                                        static_cast<off_t>(offset))
                               : pread(job.descriptor, buffer, request, static_cast<off_t>(offset));
      require(done == static_cast<ssize_t>(request), "short transfer");
    }
    slice.operations += batch;
    slice.ns = worker::now_ns() - start;
  } while (slice.ns < job.slice_ns);
  return slice;
}

// Reads everything and compares; page_generation says which of the two contents a page must have.
void verify(const Job& job, const Content* contents, const std::vector<bool>* changed) {
  worker::Buffer buffer(kPassRequest);
  for (uint64_t offset = 0; offset < job.size; offset += kPassRequest) {
    size_t length = std::min<uint64_t>(kPassRequest, job.size - offset);
    ssize_t done = pread(job.descriptor, buffer.data(), length, static_cast<off_t>(offset));
    require(done == static_cast<ssize_t>(length), "verification: short read");
    for (size_t at = 0; at < length; at += kPage) {
      size_t part = std::min(kPage, length - at);
      bool second = changed != nullptr && (*changed)[(offset + at) / kPage];
      if (memcmp(buffer.data() + at, contents[second ? 1 : 0].at(offset + at), part) != 0) {
        worker::fail("wrong content at offset " + std::to_string(offset + at));
      }
    }
  }
}

void write_all(const Job& job, const Content& content) {
  for (uint64_t offset = 0; offset < job.size; offset += kPassRequest) {
    size_t length = std::min<uint64_t>(kPassRequest, job.size - offset);
    worker::write_fully(job.descriptor, content.at(offset), length, offset);
  }
}

// Every request read in a random place must have the bytes of that place, whatever its size.
void verify_places(const Job& job, uint64_t request, const Content& content, char* buffer) {
  Random random(job.seed + 4711);
  for (int i = 0; i < 500; ++i) {
    uint64_t offset = random.below(job.size / request) * request;
    ssize_t done = pread(job.descriptor, buffer, request, static_cast<off_t>(offset));
    require(done == static_cast<ssize_t>(request), "short read");
    if (memcmp(buffer, content.at(offset), request) != 0) {
      worker::fail("wrong content at offset " + std::to_string(offset));
    }
  }
}

void mark_changed(const Job& job, uint64_t request, const std::vector<Slice>& slices,
                  std::vector<bool>* changed) {
  for (const Slice& slice : slices) {
    Random random(slice.seed);
    for (uint64_t i = 0; i < slice.operations; ++i) {
      uint64_t page = random.below(job.size / request) * request / kPage;
      std::fill_n(changed->begin() + static_cast<ptrdiff_t>(page), request / kPage, true);
    }
  }
}

constexpr unsigned kSlicesMax = 256;

// Shared by the reading processes: where they meet before each slice, and what each slice came to.
struct Barrier {
  std::atomic<unsigned> waiting;
  std::atomic<unsigned> phase;
  std::atomic<uint64_t> operations[kSlicesMax];
  std::atomic<int64_t> ns[kSlicesMax];
};

void wait_at(Barrier* barrier, unsigned processes) {
  unsigned phase = barrier->phase.load();
  if (barrier->waiting.fetch_add(1) + 1 == processes) {
    barrier->waiting = 0;
    barrier->phase = phase + 1;
  }
  while (barrier->phase.load() == phase) sched_yield();
}

// Reads in several processes at once: every slice starts together, and operations are summed.
void run_processes(Job job, const std::string& path, uint64_t request, unsigned processes) {
  auto* barrier = static_cast<Barrier*>(
      mmap(nullptr, sizeof(Barrier), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  require(barrier != MAP_FAILED, "mmap");
  for (unsigned process = 0; process < processes; ++process) {
    pid_t child = fork();
    require(child >= 0, "fork");
    if (child != 0) continue;
    Content content(0);
    worker::Buffer buffer(request);
    job.descriptor = open(path.c_str(), O_RDONLY);
    require(job.descriptor >= 0, "open " + path);
    verify(job, &content, nullptr);
    for (unsigned i = 0; i < job.slices; ++i) {
      wait_at(barrier, processes);
      Slice slice = run_slice(job, request, job.seed + i * 64 + process, content, buffer.data());
      barrier->operations[i] += slice.operations;
      barrier->ns[i] += slice.ns / processes;
    }
    _exit(0);
  }
  for (unsigned process = 0; process < processes; ++process) {
    int status = 0;
    require(wait(&status) > 0, "wait");
    if (status != 0) worker::fail("a reading process failed");
  }
  double fastest = 1e18;
  for (unsigned i = 0; i < job.slices; ++i) {
    double ns = static_cast<double>(barrier->ns[i]) / static_cast<double>(barrier->operations[i]);
    fastest = std::min(fastest, ns);
  }
  printf("{\"%lu\": {\"ns\": %.3f, \"operations\": %lu}}\n", request, fastest,
         barrier->operations[0].load());
}

// The file must be there with its size: nothing is written that could hide what is wrong.
void check_file(Job job, const std::string& path, const Content* contents) {
  job.descriptor = open(path.c_str(), O_RDONLY);
  require(job.descriptor >= 0, "open " + path);
  struct stat status;
  require(fstat(job.descriptor, &status) == 0, "fstat");
  if (static_cast<uint64_t>(status.st_size) != job.size) worker::fail("wrong size: " + path);
  verify(job, contents, nullptr);
  printf("{}\n");
}

}  // namespace

int main(int count, char** words) {
  worker::Options options(count, words);
  std::string path = options.positional(0);
  Job job{.size = options.number("--size", 64 << 20),
          .write = options.text("--mode", "read") == "write",
          .slices = static_cast<unsigned>(options.number("--slices", 15)),
          .slice_ns = static_cast<int64_t>(options.number("--slice-ms", 20)) * 1'000'000,
          .seed = options.number("--seed", 1)};
  std::vector<uint64_t> requests = options.numbers("--requests", "4096");
  unsigned processes = static_cast<unsigned>(options.number("--processes", 1));
  if (job.slices == 0 || job.slices > kSlicesMax) worker::fail("--slices: 1 to 256");
  const Content contents[] = {Content(0), Content(1)};
  if (options.text("--mode", "read") == "check") {
    check_file(job, path, contents);
    return 0;
  }
  job.descriptor = open(path.c_str(), O_RDWR | O_CREAT, 0644);
  require(job.descriptor >= 0, "open " + path);
  struct stat status;
  require(fstat(job.descriptor, &status) == 0, "fstat");
  // A pass over all of it makes the file resident and, under test, maps it into this process.
  if (job.write || static_cast<uint64_t>(status.st_size) != job.size) write_all(job, contents[0]);
  verify(job, contents, nullptr);
  if (processes > 1) {
    run_processes(job, path, requests.front(), processes);
    return 0;
  }
  std::vector<bool> changed(job.size / kPage + 1);
  worker::Buffer buffer(Content::kLargestRequest);
  std::string report;
  uint64_t seed = job.seed * 1000;
  for (uint64_t request : requests) {
    std::vector<Slice> slices;
    std::vector<double> ns;
    for (unsigned i = 0; i < job.slices; ++i) {
      slices.push_back(run_slice(job, request, ++seed, contents[1], buffer.data()));
      ns.push_back(static_cast<double>(slices.back().ns) /
                   static_cast<double>(slices.back().operations));
    }
    if (job.write) {
      mark_changed(job, request, slices, &changed);
    } else {
      verify_places(job, request, contents[0], buffer.data());
    }
    char text[128];
    snprintf(text, sizeof text, "%s\"%lu\": {\"ns\": %.3f, \"operations\": %lu}",
             report.empty() ? "" : ", ", request, *std::min_element(ns.begin(), ns.end()),
             slices.back().operations);
    report += text;
  }
  verify(job, contents, &changed);
  printf("{%s}\n", report.c_str());
  return 0;
}
