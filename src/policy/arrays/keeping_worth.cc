// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/keeping_worth.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::arrays {
namespace {

// A copy from the tiers: a lookup, and the bytes at the speed of memory.
constexpr double kCopyBytesPerSecond = 2e9;
// So much is unpacked before anything is believed.
constexpr std::uint64_t kBytesBelieved = std::uint64_t{4} << 20;
// Chunks that were gone before they are taken for a rule.
constexpr std::uint64_t kLostBelieved = 16;
// A rest is of as many times the reads for which chunks were kept in vain, doubled each time.
constexpr std::uint64_t kRestFactor = 4;
constexpr unsigned kDoublingsMax = 8;
// Chunks further on share their bits: a chunk may then count as lost that was never kept.
constexpr std::uint64_t kBitsMax = std::uint64_t{1} << 20;
constexpr std::uint64_t kWordBits = 64;

}  // namespace

KeepingWorth::Place KeepingWorth::place_of(std::uint64_t chunk) {
  const std::uint64_t at = chunk % kBitsMax;
  return {at / kWordBits, std::uint64_t{1} << (at % kWordBits)};
}

KeepingWorth::Answer KeepingWorth::answer() const {
  if (resting_reads_ != 0) return Answer::kNoRoom;
  const bool is_cheap =
      unpacked_bytes_ >= kBytesBelieved &&
      unpacked_seconds_ <= static_cast<double>(unpacked_bytes_) / kCopyBytesPerSecond;
  return is_cheap ? Answer::kCheap : Answer::kYes;
}

void KeepingWorth::note_unpacked(std::uint64_t bytes, double seconds) {
  CAIRN_DCHECK(bytes != 0);
  unpacked_bytes_ += bytes;
  unpacked_seconds_ += seconds;
  ++unpacked_chunks_;
}

void KeepingWorth::note_kept(std::uint64_t chunk, double seconds) {
  const Place place = place_of(chunk);
  if (place.word >= kept_.size()) kept_.resize(place.word + 1);
  kept_[place.word] |= place.bit;
  ++kept_chunks_;
  kept_seconds_ += seconds;
}

void KeepingWorth::note_found() {
  ++found_;
  if (resting_reads_ != 0) --resting_reads_;
}

void KeepingWorth::note_missed(std::uint64_t chunk) {
  if (resting_reads_ != 0) {
    --resting_reads_;
    return;
  }
  const Place place = place_of(chunk);
  if (place.word >= kept_.size() || (kept_[place.word] & place.bit) == 0) return;
  kept_[place.word] &= ~place.bit;
  if (++lost_ == kLostBelieved) judge();
}

void KeepingWorth::judge() {
  CAIRN_DCHECK(resting_reads_ == 0 && lost_ == kLostBelieved);
  const double unpacking =
      unpacked_chunks_ == 0 ? 0 : unpacked_seconds_ / static_cast<double>(unpacked_chunks_);
  lost_ = 0;
  if (static_cast<double>(found_) * unpacking >= kept_seconds_) {
    // Old evidence counts less than new.
    found_ /= 2;
    kept_chunks_ /= 2;
    kept_seconds_ /= 2;
    rests_ = 0;
    return;
  }
  resting_reads_ = (kRestFactor * kept_chunks_) << std::min(rests_, kDoublingsMax);
  ++rests_;
  std::fill(kept_.begin(), kept_.end(), 0);
  kept_chunks_ = 0;
  kept_seconds_ = 0;
  found_ = 0;
}

}  // namespace cairn::arrays
