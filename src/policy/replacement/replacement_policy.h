// SPDX-License-Identifier: Apache-2.0
// Which blocks leave a tier that runs short of room: the interface of replacement policies.
//
// A policy is pure: views of blocks in, chosen blocks out; no clock, no lock, no I/O. To add one,
// write `<name>.h` beside this header and put it into the table in policy/replacement/policies.h;
// the conformance suite (replacement_policy_test.cc) then runs against it.
//
// Thread safety: a policy has no state; choose() from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace cairn {

// One block as a policy sees it.
struct BlockView {
  BucketIndex bucket{};
  std::uint32_t recency_ms =
      0;  // of the monotonic clock, when it was last used; wraps: compare differences to now
  std::uint32_t frequency = 0;
  std::uint32_t bytes = 0;
  bool dirty = false;
  AccountId account = AccountId::kNobody;  // whose share of the tier it is in
  std::uint8_t priority = 4;  // of the file, 0 leaves first; see memory/catalog/object_handling.h
  ObjectIndex object = ObjectIndex::kNone;  // whose block it is
  BlockNumber number{};
  bool is_unread = false;       // fetched ahead, and not used yet
  std::uint32_t placed_ms = 0;  // when it came into the tier; wraps as recency_ms does
  // Room for a policy's own thoughts.
  bool is_held = false;
  std::uint32_t until_use = kUseUnknown;  // reads until it is wanted, where that is known

  static constexpr std::uint32_t kUseUnknown = UINT32_MAX;
  static constexpr std::uint32_t kUseNever = UINT32_MAX - 1;
  static constexpr std::uint32_t kUseFarAway = UINT32_MAX - 2;  // behind all that is known
};

struct ReplacementRequest {
  std::uint64_t bytes_wanted = 0;
  std::uint32_t now_ms = 0;
  TierId tier = TierId::kMemory;
};

// Orders blocks of one priority: the one unused longest first, and clean ones before dirty ones.
inline bool is_older(const BlockView& left, const BlockView& right, std::uint32_t now_ms) {
  const std::uint32_t left_age = elapsed_ms(now_ms, left.recency_ms);
  const std::uint32_t right_age = elapsed_ms(now_ms, right.recency_ms);
  if (left_age != right_age) return left_age > right_age;
  if (left.dirty != right.dirty) return right.dirty;
  return raw(left.bucket) < raw(right.bucket);
}

// How many of the first candidates it takes to reach so many bytes, or all of them.
inline std::size_t count_for(std::span<const BlockView> candidates, std::uint64_t bytes_wanted) {
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  while (count < candidates.size() && bytes < bytes_wanted) bytes += candidates[count++].bytes;
  return count;
}

class ReplacementPolicy {
 public:
  virtual const char* name() const = 0;
  // Reorders `candidates` so that those to leave come first, best first.
  // Returns: how many of them; their bytes reach request.bytes_wanted where the candidates suffice
  // for it.
  virtual std::size_t choose(std::span<BlockView> candidates,
                             const ReplacementRequest& request) const = 0;
  // Whether a clean block that leaves `from` is worth its place in the slower tier `to`; else it is
  // dropped, for the backing store has it.
  virtual bool admits(const BlockView& /*block*/, TierId /*from*/, TierId /*to*/) const {
    return true;
  }

 protected:
  ~ReplacementPolicy() = default;
};

}  // namespace cairn
