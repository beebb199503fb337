// SPDX-License-Identifier: Apache-2.0
#include "policy/placement/placement_check.h"

#include <algorithm>
#include <array>

namespace cairn {
namespace {

class Execution {
 public:
  explicit Execution(std::span<TierView> tiers) : tiers_(tiers) {
    for (std::size_t at = 0; at < tiers_.size(); ++at) room_[at] = tiers_[at].usable_bytes();
  }

  const char* step(const PlacementStep& step, const PlacementRequest& request) {
    std::size_t at = 0;
    while (at < tiers_.size() && tiers_[at].id != step.tier) ++at;
    if (at == tiers_.size()) return "names a tier that does not exist";
    if (step.tier < request.fastest) return "names a tier above the fastest allowed";
    if (step.kind == PlacementStep::Kind::kMakeRoom) return make_room(at, step.bytes);
    if (step.kind == PlacementStep::Kind::kPlace) return place(at, step.bytes, request.bytes);
    return "has a step of an unknown kind";
  }

 private:
  const char* make_room(std::size_t at, std::uint64_t bytes) {
    TierView& tier = tiers_[at];
    if (has_moved_[at]) return "makes room in one tier twice";
    if (has_placed_[at]) return "makes room after it placed";
    if (tier.free_bytes > tier.capacity_bytes || bytes > tier.capacity_bytes - tier.free_bytes) {
      return "moves more than there is in a tier";
    }
    std::uint64_t left = bytes;
    for (std::size_t below = at + 1; below < tiers_.size(); ++below) {
      const std::uint64_t here = std::min(left, room_[below]);
      room_[below] -= here;
      tiers_[below].free_bytes -= here;
      left -= here;
    }
    if (left != 0) return "moves more than the tiers below have room for";
    has_moved_[at] = true;
    room_[at] += bytes;
    tier.free_bytes += bytes;
    return nullptr;
  }

  const char* place(std::size_t at, std::uint64_t bytes, std::uint64_t requested) {
    if (has_placed_[at]) return "places in one tier twice";
    if (bytes > room_[at]) return "places more than there is room for";
    if (bytes > requested - placed_bytes_) return "places more than was asked for";
    has_placed_[at] = true;
    room_[at] -= bytes;
    tiers_[at].free_bytes -= bytes;
    placed_bytes_ += bytes;
    return nullptr;
  }

  std::span<TierView> tiers_;
  std::array<std::uint64_t, kTiersMax> room_{};  // for the request or for moved bytes
  std::array<bool, kTiersMax> has_moved_{};
  std::array<bool, kTiersMax> has_placed_{};
  std::uint64_t placed_bytes_ = 0;
};

}  // namespace

const char* carry_out(const Placement& placement, const PlacementRequest& request,
                      std::span<TierView> tiers) {
  if (placement.count > Placement::kStepsMax) return "has too many steps";
  if (tiers.size() > kTiersMax) return "is about too many tiers";
  Execution execution(tiers);
  for (const PlacementStep& step : placement.all()) {
    if (const char* fault = execution.step(step, request)) return fault;
  }
  return nullptr;
}

const char* fault_in(const Placement& placement, const PlacementRequest& request,
                     std::span<const TierView> tiers) {
  if (tiers.size() > kTiersMax) return "is about too many tiers";
  std::array<TierView, kTiersMax> copies;
  std::copy(tiers.begin(), tiers.end(), copies.begin());
  return carry_out(placement, request, {copies.data(), tiers.size()});
}

}  // namespace cairn
