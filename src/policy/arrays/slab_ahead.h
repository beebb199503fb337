// SPDX-License-Identifier: Apache-2.0
// What of an array to bring in before it is read, for an array whose rows lie in the file one after
// the other.
//
// A program that goes through such an array in boxes, alone or with others, reads rows that lie far
// apart, and all of them in the end: its boxes fill a slab of the file from side to side, then the
// next one. So the slab that a box is in is worth reading in large pieces in the order of the file,
// and then the one behind it, while the program computes. (ARCHIE fetches the chunk that follows in
// row-major order, for each of n ranks the n-th (section III-E); on a disk the bytes between them
// are as cheap.)
//
// A selection with steps is as a box where its gaps are cheaper to read than to jump over: the
// slab that it spans is brought in, and the one behind it. Where its cells lie further apart,
// nothing is.
//
// How much is brought in follows from how much has been read, and whether what was brought in is:
// a program that reads a column here and there does not cause the whole array to be read.
//
// The slab of a read that has begun, in pieces that are in half of its blocks or more, is worth
// waiting for: row by row it would be so many requests of the device.
//
// Units: bytes from the array's first cell on. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "policy/arrays/box.h"
#include "policy/arrays/row_reads.h"

namespace cairn::arrays {

class SlabAhead {
 public:
  // The file is read in blocks of so many bytes.
  static constexpr std::uint64_t kBlockBytes = std::uint64_t{64} << 10;
  // So many times the bytes that were read are brought in, at most.
  static constexpr std::uint64_t kFactorMax = 4;

  // Requires: an array that has cells, of fewer than 2^64 bytes.
  SlabAhead(const Coordinates& array, std::size_t cell_bytes);

  // The program reads that box now: what to bring in, if anything. Requires: a box of the array
  // that is not empty.
  std::optional<ByteRun> observe(const Box& box);
  // The same of a selection with holes. Requires: its bounds are of the array.
  std::optional<ByteRun> observe(const Hyperslab& selection);
  // The slab of a read that is worth waiting for; of no bytes where there is none. Requires: as
  // observe().
  ByteRun needed_now(const Box& box) const;
  ByteRun needed_now(const Hyperslab& selection) const;
  // Nothing will be brought in any more.
  bool is_done() const { return asked_.end() >= bytes_ || factor_ == 0; }

 private:
  // A box that is in one piece is read with one request.
  static constexpr std::uint64_t kSlabBytesMin = 4 * kBlockBytes;

  ByteRun slab_of(const Box& box) const;
  std::uint64_t touched_by(const Hyperslab& selection) const;
  std::optional<ByteRun> bring(const ByteRun& slab, std::uint64_t touched);
  void judge(const ByteRun& slab);

  Coordinates array_;
  std::size_t cell_bytes_;
  std::uint64_t bytes_ = 0;    // of the array
  std::uint64_t touched_ = 0;  // of blocks with wanted bytes in them
  std::uint64_t brought_ = 0;
  std::uint64_t factor_ = 2;  // what is read now, and as much again
  std::uint64_t misses_ = 0;  // reads in a row outside of what was brought in
  ByteRun asked_;             // that it was told to bring in, without gaps
};

}  // namespace cairn::arrays
