// SPDX-License-Identifier: Apache-2.0
//
// Reads pieces of a file in a given order, computing in between, and compares every byte.
//   read_list FILE --make 256M                     writes the file and drops it from the page cache
//   read_list FILE --list LIST [--compute-us 4000] [--batch 1]   reads it
// After each batch of reads it computes so long for each of them.
// LIST has one line per read, "OFFSET LENGTH" in bytes; "=" opens the file anew (the next epoch).
// Prints {"reads", "bytes", "io_ns", "wall_ns", "slow_reads"}: slow ones took more than 1 ms.
#include <fstream>

#include "worker.h"

namespace {

struct Piece {
  uint64_t offset = 0;
  uint64_t length = 0;  // 0: open the file anew
};

std::vector<Piece> read_list(const std::string& path) {
  std::ifstream file(path);
  std::vector<Piece> pieces;
  for (std::string word; file >> word;) {
    Piece piece;
    if (word != "=") {
      piece.offset = std::stoull(word);
      worker::require(static_cast<bool>(file >> piece.length), "the list is cut off");
    }
    pieces.push_back(piece);
  }
  worker::require(!pieces.empty(), "cannot read " + path);
  return pieces;
}

int open_file(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  worker::require(descriptor >= 0, path);
  return descriptor;
}

void make(const std::string& path, uint64_t size) {
  const worker::Content content(1);
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  worker::require(descriptor >= 0, path);
  constexpr uint64_t kRequest = 1 << 20;
  for (uint64_t at = 0; at < size; at += kRequest) {
    worker::write_fully(descriptor, content.at(at), std::min(kRequest, size - at), at);
  }
  worker::require(fsync(descriptor) == 0, "fsync");
  posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  close(descriptor);
  printf("{}\n");
}

void compute(int64_t nanos) {
  const int64_t end = worker::now_ns() + nanos;
  // Another program may have the processor meanwhile, as it would beside one that computes on a
  // core of its own.
  const timespec time{nanos / 1'000'000'000, nanos % 1'000'000'000};
  nanosleep(&time, nullptr);
  while (worker::now_ns() < end) {
  }
}

}  // namespace

int main(int count, char** words) {
  const worker::Options options(count, words);
  const std::string path = options.positional(0);
  if (const uint64_t size = options.number("--make", 0); size != 0) {
    make(path, size);
    return 0;
  }
  const std::vector<Piece> pieces = read_list(options.text("--list", ""));
  const auto pause_ns = static_cast<int64_t>(options.number("--compute-us", 4000) * 1000);
  const worker::Content content(1);
  const worker::Buffer buffer(worker::Content::kLargestRequest);
  const uint64_t batch = options.number("--batch", 1);
  uint64_t reads = 0;
  uint64_t bytes = 0;
  int64_t io_ns = 0;
  int slow = 0;
  const int64_t began = worker::now_ns();
  int descriptor = open_file(path);
  for (const Piece& piece : pieces) {
    if (piece.length == 0) {
      close(descriptor);
      descriptor = open_file(path);
      continue;
    }
    worker::require(piece.length <= worker::Content::kLargestRequest, "a piece is too long");
    const int64_t start = worker::now_ns();
    const ssize_t got =
        pread(descriptor, buffer.data(), piece.length, static_cast<off_t>(piece.offset));
    const int64_t took = worker::now_ns() - start;
    worker::require(got == static_cast<ssize_t>(piece.length), "pread");
    if (memcmp(buffer.data(), content.at(piece.offset), piece.length) != 0)
      worker::fail("wrong bytes at " + std::to_string(piece.offset));
    io_ns += took;
    slow += took > 1'000'000;
    bytes += piece.length;
    if (++reads % batch == 0) compute(pause_ns * static_cast<int64_t>(batch));
  }
  close(descriptor);
  printf(
      "{\"reads\": %llu, \"bytes\": %llu, \"io_ns\": %lld, \"wall_ns\": %lld, "
      "\"slow_reads\": %d}\n",
      static_cast<unsigned long long>(reads), static_cast<unsigned long long>(bytes),
      static_cast<long long>(io_ns), static_cast<long long>(worker::now_ns() - began), slow);
  return 0;
}
