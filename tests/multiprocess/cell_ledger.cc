// SPDX-License-Identifier: Apache-2.0
#include "multiprocess/cell_ledger.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>

namespace cairn::testing {
namespace {

struct Expected {
  std::uint64_t least;
  std::uint64_t most;
};

// On stderr, because the reader may be a process that is about to be killed.
void print_violation(const std::vector<std::uint64_t>& words, ssize_t got, Expected expected) {
  std::fprintf(stderr, "%zd bytes, expected %lu to %lu, words (from, value):", got,
               static_cast<unsigned long>(expected.least),
               static_cast<unsigned long>(expected.most));
  const auto count = static_cast<std::size_t>(std::max<ssize_t>(got, 0)) / sizeof(words[0]);
  for (std::size_t at = 0; at < count; ++at) {
    if (at == 0 || words[at] != words[at - 1])
      std::fprintf(stderr, " %zu: %lu", at, static_cast<unsigned long>(words[at]));
  }
  std::fprintf(stderr, "\n");
}

}  // namespace

Ledger* make_ledger() {
  void* memory =
      ::mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Ledger*>(memory);
}

std::string path_of(const NodeProcess& node, unsigned file) {
  return node.data_directory() + "/file-" + std::to_string(file);
}

bool is_in_order(const std::vector<std::uint64_t>& words, std::size_t count, std::uint64_t least,
                 std::uint64_t most) {
  for (std::size_t at = 0; at < count; ++at) {
    if (words[at] < least || words[at] > most) return false;
  }
  return true;
}

void write_cell(Ledger& ledger, OpenFile& file, unsigned number, unsigned cell) {
  Cell& entry = ledger.cells[number][cell];
  const std::uint64_t next = entry.intended.load() + 1;
  const std::vector<std::uint64_t> words(kCellWords, next);
  entry.intended.store(next);
  if (file.write(cell * kCellBytes, words.data(), kCellBytes) == static_cast<ssize_t>(kCellBytes)) {
    entry.written.store(next);
    ledger.writes.fetch_add(1);
  }
}

void read_cell(Ledger& ledger, OpenFile& file, unsigned number, unsigned cell) {
  const Cell& entry = ledger.cells[number][cell];
  std::vector<std::uint64_t> words(kCellWords);
  const std::uint64_t least = entry.written.load();
  const ssize_t got = file.read(cell * kCellBytes, words.data(), kCellBytes);
  const std::uint64_t most = entry.intended.load();
  ledger.reads.fetch_add(1);
  const bool short_read = got < static_cast<ssize_t>(kCellBytes) && least != 0;
  if (got < 0 || short_read ||
      !is_in_order(words, static_cast<std::size_t>(got) / 8, least, most)) {
    std::fprintf(stderr, "file %u, cell %u: ", number, cell);
    print_violation(words, got, Expected{least, most});
    ledger.violations.fetch_add(1);
  }
}

}  // namespace cairn::testing
