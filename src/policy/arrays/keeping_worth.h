// SPDX-License-Identifier: Apache-2.0
// Whether the chunks of a dataset are worth keeping unpacked, by what one process has seen of them.
//
// To keep one costs a copy and the room of others. It pays where unpacking takes longer than a copy
// from the tiers, and where chunks stay until they are read again. Those that were kept and are
// gone when they are wanted next are evidence against it: once there are enough of them, and what
// was found in the tiers has saved less time than keeping took, nothing is kept for some reads.
// Then it is tried again, after twice as many reads each time that it fails.
//
// Units: bytes, seconds. Thread safety: none. Ownership: a bit for each chunk, at most 128 KiB.
#pragma once

#include <cstdint>
#include <vector>

namespace cairn::arrays {

class KeepingWorth {
 public:
  enum class Answer : std::uint8_t {
    kYes,
    kCheap,   // to unpack them is cheaper than to copy them from the tiers
    kNoRoom,  // they do not stay long enough
  };

  Answer answer() const;
  bool is_worth() const { return answer() == Answer::kYes; }

  // A chunk is wanted, and was in the tiers, or was not.
  void note_found();
  void note_missed(std::uint64_t chunk);
  // Requires: bytes != 0.
  void note_unpacked(std::uint64_t bytes, double seconds);
  void note_kept(std::uint64_t chunk, double seconds);

 private:
  struct Place {
    std::size_t word;
    std::uint64_t bit;
  };
  static Place place_of(std::uint64_t chunk);
  // Requires: enough evidence.
  void judge();

  std::uint64_t unpacked_bytes_ = 0;
  double unpacked_seconds_ = 0;
  std::uint64_t unpacked_chunks_ = 0;

  std::vector<std::uint64_t> kept_;  // by chunk
  std::uint64_t kept_chunks_ = 0;
  double kept_seconds_ = 0;
  std::uint64_t found_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t resting_reads_ = 0;  // that are left of a rest
  unsigned rests_ = 0;               // in a row
};

}  // namespace cairn::arrays
