// SPDX-License-Identifier: Apache-2.0
// Memory for the start of another program, for callers that may not allocate and whose stack may
// be too small: a thread with thousands of files, or a vfork child, whose memory is its parent's.
//
// What a vfork child takes would be its parent's for good, because an exec that succeeds does not
// come back to give it away. So it takes a block of this table, and the kernel clears the word that
// says so when the child leaves its parent's memory (set_tid_address(2)), by exec or by its end.
//
//   user = 0   free, with the memory of the last one
//   user = n   of the vfork child n
//
// Thread safety: any thread. Ownership: the process keeps the blocks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn {

class ExecMemory {
 public:
  ExecMemory(std::size_t size, bool is_child);
  // The start has failed.
  ~ExecMemory();
  ExecMemory(const ExecMemory&) = delete;
  ExecMemory& operator=(const ExecMemory&) = delete;

  // Null when there is none.
  std::byte* begin() const { return begin_; }

 private:
  struct Block {
    std::int32_t user;
    std::byte* memory;
    std::size_t size;
  };
  static Block* claim();

  // Vfork children at the same time.
  static constexpr unsigned kBlocks = 64;
  static Block blocks_[kBlocks];

  Block* block_ = nullptr;  // of a vfork child
  std::byte* begin_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace cairn
