// SPDX-License-Identifier: Apache-2.0
// Undoes the plain filters of a chunk: deflate as zlib has it, HDF5's shuffle and its checksum.
//
// How many cells come out is known before, so bytes that say otherwise are refused: whatever stands
// in a file, no more is written than there is room for. Without libdeflate nothing is unpacked.
//
// Thread safety: one thread each. Ownership: its memory, which is that of the largest chunk so far.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "policy/arrays/packed_array.h"

namespace cairn::node {

// HDF5's variant of Fletcher's checksum.
std::uint32_t fletcher32(std::span<const std::byte> bytes);

class ChunkCodec {
 public:
  // Whether this build has what it takes.
  static bool is_there();

  ChunkCodec();
  ~ChunkCodec();
  ChunkCodec(const ChunkCodec&) = delete;
  ChunkCodec& operator=(const ChunkCodec&) = delete;

  // Returns: whether the packed bytes are those of that many, which are in `cells` then.
  bool unpack(const arrays::PackedArray& array, std::span<const std::byte> packed,
              std::span<std::byte> cells);

 private:
  bool undo(arrays::PlainFilter filter, std::size_t cell_bytes, std::size_t bytes_before);
  bool inflate(std::size_t bytes_before);
  bool check_sum(std::size_t bytes_before);
  bool unshuffle(std::size_t cell_bytes, std::size_t bytes_before);

  struct Inflater;
  std::unique_ptr<Inflater> inflater_;
  std::span<const std::byte> now_;  // in the caller's memory, or in `made_`
  std::vector<std::byte> made_;
  std::vector<std::byte> other_;
};

}  // namespace cairn::node
