// SPDX-License-Identifier: Apache-2.0
// Which chunks of an array are read next, by the readers of a parallel program.
//
// A reader that goes in steps of n chunks goes on so: the n-th successor in row-major order, as
// ARCHIE fetches it for n ranks (section III-E). What one step of a reader has shown is not known
// before its second read, so before that the readers are taken together: n of them that have read n
// chunks in a row are going to read the n chunks behind, in whatever order they share them.
//
//   readers a b c d, chunks 0 1 2 3     first reads: 4 5 6 7 are next
//   reader a: 0, 4                      8 is its next one
//   reader a: 0, 4, 8, 9, 20, 7         it goes in no steps: nothing, until it does
//
// Units: chunks. Thread safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace cairn::arrays {

class ChunkAhead {
 public:
  // Readers that are remembered; of more, the one that has rested longest is forgotten.
  static constexpr std::size_t kReadersMax = 256;
  // After so many wrong guesses in a row a reader has to show more than one step.
  static constexpr unsigned kWrongMax = 4;
  static constexpr unsigned kStepsOfProof = 3;

  // Requires: the array's chunks, at least one.
  explicit ChunkAhead(std::uint64_t chunks);

  // The reader reads that chunk. Returns: chunks to bring in before they are read, each once, the
  // soonest first. Requires: chunk < chunks.
  std::vector<std::uint64_t> observe(std::uint64_t reader, std::uint64_t chunk);

  // Chunks that were guessed and read since, and those that were read otherwise.
  std::uint64_t right() const { return right_; }
  std::uint64_t wrong() const { return wrong_; }

 private:
  struct Reader {
    std::uint64_t chunk = 0;    // the last one
    std::int64_t step = 0;      // from the one before
    unsigned steps = 0;         // of that size in a row
    std::uint64_t read_at = 0;  // in observations
  };

  void judge(std::uint64_t chunk);
  void forget_oldest();
  std::vector<std::uint64_t> behind_the_team() const;
  // Adds the chunk to `next`, and to what was guessed, unless it was guessed before.
  void guess(std::uint64_t chunk, std::vector<std::uint64_t>* next);

  std::uint64_t chunks_;
  std::uint64_t observations_ = 0;
  std::uint64_t right_ = 0;
  std::uint64_t wrong_ = 0;
  unsigned wrong_in_a_row_ = 0;
  std::map<std::uint64_t, Reader> readers_;
  std::deque<std::uint64_t> guessed_;  // and not read yet, the latest last
};

}  // namespace cairn::arrays
