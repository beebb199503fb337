// SPDX-License-Identifier: Apache-2.0
// Which blocks leave a tier, as an expert of replacement has learned it from what programs read
// (policy/replacement/expert.h): those that the expert would not hold, the longest unused first.
//
// Each tier has an expert of its own. It hears of every access and has as much room as the tier and
// those above it together: a block that it does not hold has no place there or further up. It
// thinks in segments of neighbouring blocks, 8 at most tiers and more in very large ones, so that
// its memory takes about 0.3 % of the tier's bytes, and never more than 50 MiB.
//
// Blocks that were fetched ahead and wait for their use are not known to it yet, and stay.
//
// Where it is known which blocks a program will read next (service/learning/known_future_table.h),
// nothing has to be learned of these. The expert's choice among all others still decides how many
// of them a tier has; those that are wanted last leave first. Blocks that no known order wants
// leave with those that the expert would not hold.
//
// A clean block leaves to the next tier if it is worth that (policy/replacement/admission.h); what
// has left a tier and whether it came back is what its expert would have seen.
//
// Files that are gone are forgotten: the expert looks for them once for as many references as it
// remembers segments, and when their record is given to another file.
//
// Thread safety: all functions from any thread. Ownership: its experts.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "policy/replacement/admission.h"
#include "policy/replacement/expert.h"
#include "policy/replacement/page_numbers.h"
#include "policy/replacement/replacement_policy.h"
#include "service/learning/access_observer.h"
#include "service/learning/known_future_table.h"

namespace cairn::node {

class LearnedReplacement final : public ReplacementPolicy, public AccessObserver {
 public:
  static constexpr std::uint32_t kSegmentBlocksMin = 8;
  static constexpr std::uint32_t kSegmentsMax = 32'768;

  // `expert` is a name of policy/replacement/experts.h. Requires: it is one.
  LearnedReplacement(const NodeMemory& memory, const std::string& expert,
                     unsigned kept_free_percent);

  // Before anything is taken or chosen.
  void set_future(const KnownFutureTable* future) { future_ = future; }
  // The savings and the costs of a block in the tier. Without it every block is admitted
  // everywhere.
  using CostsOf = std::function<AdmissionCosts(TierId tier)>;
  void admit_by_value(CostsOf costs_of);

  void on_accesses(std::span<const ToldAccess> batch) override;

  const char* name() const override { return name_.c_str(); }
  std::size_t choose(std::span<BlockView> candidates,
                     const ReplacementRequest& request) const override;
  bool admits(const BlockView& block, TierId from, TierId to) const override;

  struct TierReport {
    std::string follows;  // the expert that is followed
    std::uint64_t references = 0;
    std::uint64_t misses = 0;       // of them, as the expert would have had them
    std::uint64_t segments = 0;     // that are remembered
    std::uint64_t known_ahead = 0;  // reads of blocks that are known beforehand
  };
  TierReport report(TierId tier) const;

 private:
  struct Segment {
    std::uint64_t key = UINT64_MAX;
    std::uint32_t uses = 0;
  };
  struct Tier {
    std::unique_ptr<Expert> expert;  // null: the tier does not exist
    PageNumbers pages;
    std::unique_ptr<ReturnRates> returns;  // null: everything is admitted below
    std::vector<Segment> segments;         // by page number
    std::uint32_t segment_blocks = kSegmentBlocksMin;
    std::uint64_t last_key = UINT64_MAX;  // neighbours in one segment are one reference
    std::uint64_t references = 0;
    std::uint64_t misses = 0;
    std::uint64_t looked_at = 0;  // references, when files that are gone were looked for
  };
  static std::uint64_t key_of(ObjectIndex object, std::uint32_t block, std::uint32_t segment) {
    return std::uint64_t{raw(object)} << 32 | block / segment;
  }
  void reference(Tier& tier, const AccessEvent& event);
  void reference(Tier& tier, std::uint64_t key);
  static void follow_returns(Tier& tier, PageId page, std::uint64_t key, bool is_hit);
  void note_file(ObjectIndex object);
  bool is_gone(ObjectIndex object) const;
  static void forget_segment(Tier& tier, std::uint64_t key);
  void forget_gone(Tier& tier) const;
  void look_up(std::span<BlockView> candidates, const ReplacementRequest& request) const;
  void note_chosen(std::span<const BlockView> victims, TierId tier) const;
  static double chance_of(const Tier& tier, const BlockView& block);
  bool is_worth_no_tier_below() const;

  const NodeMemory& memory_;
  const std::string name_;
  const KnownFutureTable* future_ = nullptr;
  CostsOf costs_of_;
  mutable std::mutex mutex_;
  std::vector<std::uint32_t> files_;  // by object: whose record it was, in short; 0: nobody's
  std::array<Tier, kTiersMax> tiers_;
  // The soonest next use of the blocks with a known next use that left a tier last.
  mutable std::array<std::uint32_t, kTiersMax> kept_within_;
};

}  // namespace cairn::node
