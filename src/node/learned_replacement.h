// SPDX-License-Identifier: Apache-2.0
// Which blocks leave a tier, as an expert of replacement has learned it from what programs read
// (replacement/expert.h): those that the expert would not hold, the longest unused first.
//
// Each tier has an expert of its own, which is told every access and has as much room as the tier
// and those above it together: what it does not hold has no place there or further up. It thinks in
// segments of neighbouring blocks, 8 at most tiers and more in very large ones, so that what it
// remembers takes about 0.3 % of the tier's bytes, and never more than 50 MiB.
//
// Blocks that were fetched ahead and wait for their use are not known to it yet, and stay.
//
// Thread safety: all functions from any thread. Ownership: its experts.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "node/event_reader.h"
#include "replacement/expert.h"
#include "replacement/page_numbers.h"
#include "replacement/replacement_policy.h"

namespace cairn::node {

class LearnedReplacement final : public ReplacementPolicy {
 public:
  static constexpr std::uint32_t kSegmentBlocksMin = 8;
  static constexpr std::uint32_t kSegmentsMax = 32'768;

  // `expert` is a name of replacement/experts.h. Requires: it is one.
  LearnedReplacement(const NodeMemory& memory, const std::string& expert,
                     unsigned kept_free_percent);

  // An EventReader::Sink.
  void take(std::span<const ToldAccess> batch);

  const char* name() const override { return name_.c_str(); }
  std::size_t choose(std::span<BlockView> candidates,
                     const ReplacementRequest& request) const override;

  struct TierReport {
    std::string follows;  // the expert that is followed
    std::uint64_t references = 0;
    std::uint64_t misses = 0;  // of them, as the expert would have had them
  };
  TierReport report(TierId tier) const;

 private:
  struct Tier {
    std::unique_ptr<Expert> expert;  // null: the tier does not exist
    PageNumbers pages;
    std::uint32_t segment_blocks = kSegmentBlocksMin;
    std::uint64_t last_key = UINT64_MAX;  // neighbours in one segment are one reference
    std::uint64_t references = 0;
    std::uint64_t misses = 0;
  };
  static std::uint64_t key_of(ObjectIndex object, std::uint32_t block, std::uint32_t segment) {
    return std::uint64_t{raw(object)} << 32 | block / segment;
  }
  void reference(Tier& tier, const AccessEvent& event);

  const std::string name_;
  mutable std::mutex mutex_;
  std::array<Tier, kTiersMax> tiers_;
};

}  // namespace cairn::node
