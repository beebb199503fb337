// SPDX-License-Identifier: Apache-2.0
// What processes that may be killed have written, in memory that they share with the test.
//
// Every file is written by one process at a time, in cells of one repeated number that only grows.
// The ledger says, per cell, which number was written for sure and which may have been under way.
// So a reader of a cell, at any time, must find only numbers between the two.
//
// Thread safety: any thread of any process; one writer per cell. Ownership: the ledger lives as
// long as the processes that map it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "multiprocess/node_process.h"
#include "multiprocess/test_client.h"

namespace cairn::testing {

inline constexpr unsigned kFiles = 4;
inline constexpr unsigned kCells = 400;
inline constexpr std::size_t kCellWords = 375;  // 3000 bytes: cells cross pages and blocks
inline constexpr std::size_t kCellBytes = kCellWords * sizeof(std::uint64_t);

struct Cell {
  std::atomic<std::uint64_t> intended;
  std::atomic<std::uint64_t> written;
};

struct Ledger {
  Cell cells[kFiles][kCells];
  std::atomic<std::uint64_t> reads;
  std::atomic<std::uint64_t> writes;
  std::atomic<std::uint32_t> violations;
  std::atomic<std::uint32_t> attach_failures;
};

// Shared with the processes that are forked from here on. Null when there is no memory.
Ledger* make_ledger();

// Where the file with this number is.
std::string path_of(const NodeProcess& node, unsigned file);

// Every word must be one that was written there for sure or may have been under way.
bool is_in_order(const std::vector<std::uint64_t>& words, std::size_t count, std::uint64_t least,
                 std::uint64_t most);

void write_cell(Ledger& ledger, OpenFile& file, unsigned number, unsigned cell);
// Counts a violation if something else is there than was written.
void read_cell(Ledger& ledger, OpenFile& file, unsigned number, unsigned cell);

}  // namespace cairn::testing
