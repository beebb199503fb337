// SPDX-License-Identifier: Apache-2.0
//
// Reads whole files in a given order, computing in between, and compares every byte.
//   read_files DIRECTORY --make 2000 --bytes 100K          writes the files 0, 1, 2, ...
//   read_files DIRECTORY --list LIST [--compute-us 4000] [--batch 1]   reads them
// LIST has the number of a file on each line. After each batch of files it computes so long for
// each of them.
// Prints {"reads", "bytes", "io_ns", "wall_ns"}.
#include <fstream>

#include "worker.h"

namespace {

std::string path_of(const std::string& directory, uint64_t number) {
  return directory + "/" + std::to_string(number);
}

void make(const std::string& directory, uint64_t files, uint64_t bytes) {
  const worker::Content content(2);
  for (uint64_t number = 0; number < files; ++number) {
    const std::string path = path_of(directory, number);
    const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    worker::require(descriptor >= 0, path);
    worker::write_fully(descriptor, content.at(number * 4099), bytes, 0);
    close(descriptor);
  }
  sync();
  printf("{}\n");
}

struct Sums {
  uint64_t reads = 0;
  uint64_t bytes = 0;
  int64_t io_ns = 0;
};

void read_one(const std::string& path, uint64_t number, const worker::Content& content,
              char* buffer, Sums* sums) {
  const int64_t start = worker::now_ns();
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  worker::require(descriptor >= 0, path);
  const ssize_t got = read(descriptor, buffer, worker::Content::kLargestRequest);
  close(descriptor);
  sums->io_ns += worker::now_ns() - start;
  worker::require(got > 0, path);
  if (memcmp(buffer, content.at(number * 4099), static_cast<size_t>(got)) != 0)
    worker::fail("wrong bytes in " + path);
  sums->bytes += static_cast<uint64_t>(got);
  ++sums->reads;
}

}  // namespace

int main(int count, char** words) {
  const worker::Options options(count, words);
  const std::string directory = options.positional(0);
  if (const uint64_t files = options.number("--make", 0); files != 0) {
    make(directory, files, options.number("--bytes", 100 << 10));
    return 0;
  }
  std::ifstream list(options.text("--list", ""));
  worker::require(static_cast<bool>(list), "cannot read the list");
  const auto pause_ns = static_cast<int64_t>(options.number("--compute-us", 4000) * 1000);
  const uint64_t batch = options.number("--batch", 1);
  const worker::Content content(2);
  const worker::Buffer buffer(worker::Content::kLargestRequest);
  Sums sums;
  const int64_t began = worker::now_ns();
  for (uint64_t number = 0; list >> number;) {
    read_one(path_of(directory, number), number, content, buffer.data(), &sums);
    if (sums.reads % batch != 0) continue;
    const auto pause = pause_ns * static_cast<int64_t>(batch);
    const timespec time{pause / 1'000'000'000, pause % 1'000'000'000};
    nanosleep(&time, nullptr);
  }
  printf("{\"reads\": %llu, \"bytes\": %llu, \"io_ns\": %lld, \"wall_ns\": %lld}\n",
         static_cast<unsigned long long>(sums.reads), static_cast<unsigned long long>(sums.bytes),
         static_cast<long long>(sums.io_ns), static_cast<long long>(worker::now_ns() - began));
  return 0;
}
