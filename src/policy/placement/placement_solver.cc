// SPDX-License-Identifier: Apache-2.0
#include "policy/placement/placement_solver.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace cairn {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

// Least cost by number of granules.
using Row = std::array<double, kGranulesMax + 1>;

// How many granules the optimum puts into a tier, by the number that arrive there; with kAfterRoom,
// all of them, after room was made.
using Choices = std::array<std::uint8_t, kGranulesMax + 1>;
constexpr std::uint8_t kAfterRoom = 0x80;
static_assert(kGranulesMax < kAfterRoom);

class Solver {
 public:
  explicit Solver(const PlacementProblem& problem)
      : problem_(problem),
        granule_(granule_of(problem.bytes)),
        granules_(static_cast<unsigned>((problem.bytes - 1) / granule_ + 1)) {}

  Placement run() {
    fill_memo();
    read_off();
    use_what_is_left_over();
    return placement();
  }

 private:
  unsigned granules_in(std::uint64_t bytes) const {
    return static_cast<unsigned>(std::min<std::uint64_t>(bytes / granule_, granules_));
  }
  double cost_of(const AccessCost& cost, unsigned granules) const {
    return cost.of(granules * granule_);
  }

  void fill_memo();
  void divide(const SolverTier& tier, const AccessCost& cost, Row& row, Choices& choices) const;
  void consider_room(const SolverTier& tier, const Row& moved_below, Row& row,
                     Choices& choices) const;
  void read_off();
  double cost_of_moves(std::size_t from, unsigned granules) const;
  void use_what_is_left_over();
  Placement placement() const;

  const PlacementProblem& problem_;
  const std::uint64_t granule_;
  const unsigned granules_;
  std::array<Choices, kTiersMax> place_choices_;
  std::array<Choices, kTiersMax> move_choices_;

  // The decision, by position of the tier.
  std::array<std::uint64_t, kTiersMax> placed_{};
  std::uint64_t unplaced_ = 0;
  std::size_t room_tier_ = 0;  // where room is made first, if any is
  std::uint64_t room_bytes_ = 0;
  double room_cost_ = 0;
};

void Solver::fill_memo() {
  Row place;
  Row move;
  for (unsigned granules = 0; granules <= granules_; ++granules) {
    place[granules] = cost_of(problem_.store, granules);
    move[granules] = granules == 0 ? 0 : kImpossible;
  }
  for (std::size_t at = problem_.count; at-- > 0;) {
    const SolverTier& tier = problem_.tiers[at];
    divide(tier, tier.place, place, place_choices_[at]);
    consider_room(tier, move, place, place_choices_[at]);
    divide(tier, tier.move, move, move_choices_[at]);
  }
}

// Place, skip and split. x of the `granules` go here and v = granules - x below, where v lies in a
// window [granules - room, granules - 1] whose minimum of below[v] - per_granule * v is kept in a
// queue of ascending values (each v enters and leaves it once).
void Solver::divide(const SolverTier& tier, const AccessCost& cost, Row& row,
                    Choices& choices) const {
  Row below;
  std::copy_n(row.begin(), granules_ + 1, below.begin());
  const unsigned room = granules_in(tier.usable_bytes);
  const double per_granule = cost.per_byte * static_cast<double>(granule_);
  std::array<std::uint8_t, kGranulesMax + 1> queue;
  Row value;
  unsigned head = 0;
  unsigned tail = 0;
  row[0] = 0;
  choices[0] = 0;
  for (unsigned granules = 1; granules <= granules_; ++granules) {
    const unsigned newest = granules - 1;
    value[newest] = below[newest] - per_granule * newest;
    // Among equals the one with more bytes here stays in front.
    while (tail > head && value[queue[tail - 1]] > value[newest]) --tail;
    queue[tail++] = static_cast<std::uint8_t>(newest);
    while (head < tail && queue[head] + room < granules) ++head;
    row[granules] = below[granules];
    choices[granules] = 0;
    if (head == tail) continue;
    const double here = cost.fixed + per_granule * granules + value[queue[head]];
    if (here > below[granules]) continue;
    row[granules] = here;
    choices[granules] = static_cast<std::uint8_t>(granules - queue[head]);
  }
}

// Improves the row of this tier by making room in it; `moved_below` is the tier below's.
void Solver::consider_room(const SolverTier& tier, const Row& moved_below, Row& row,
                           Choices& choices) const {
  const unsigned room = granules_in(tier.usable_bytes);
  const unsigned movable = granules_in(tier.movable_bytes);
  for (unsigned granules = room + 1; granules <= std::min(granules_, room + movable); ++granules) {
    const double cost =
        problem_.room_cost + moved_below[granules - room] + cost_of(tier.place, granules);
    if (cost >= row[granules]) continue;
    row[granules] = cost;
    choices[granules] = static_cast<std::uint8_t>(granules | kAfterRoom);
  }
}

// Follows the choices from the fastest tier down.
void Solver::read_off() {
  unsigned left = granules_;
  std::size_t last = 0;
  for (std::size_t at = 0; at < problem_.count && left > 0; ++at) {
    const std::uint8_t choice = place_choices_[at][left];
    const unsigned here = choice & ~unsigned{kAfterRoom};
    CAIRN_DCHECK(here <= left);
    if (here == 0) continue;
    if ((choice & kAfterRoom) != 0) {
      const unsigned shortage = left - granules_in(problem_.tiers[at].usable_bytes);
      room_tier_ = at;
      room_bytes_ = shortage * granule_;
      room_cost_ = problem_.room_cost + cost_of_moves(at + 1, shortage);
    }
    placed_[at] = here * granule_;
    left -= here;
    last = at;
  }
  // The last granule of a request need not be a whole one.
  const std::uint64_t excess = granules_ * granule_ - problem_.bytes;
  CAIRN_DCHECK(excess < granule_);
  unplaced_ = left * granule_;
  (left > 0 ? unplaced_ : placed_[last]) -= excess;
}

// Where the moved bytes go is the organizer's to decide again; what they cost counts.
double Solver::cost_of_moves(std::size_t from, unsigned granules) const {
  double cost = 0;
  for (std::size_t at = from; at < problem_.count && granules > 0; ++at) {
    const unsigned here = move_choices_[at][granules];
    cost += cost_of(problem_.tiers[at].move, here);
    granules -= here;
  }
  return cost;
}

// Large granules leave parts of them free in each tier.
void Solver::use_what_is_left_over() {
  // With room made, nothing is unplaced.
  for (std::size_t at = 0; at < problem_.count && unplaced_ > 0; ++at) {
    const SolverTier& tier = problem_.tiers[at];
    std::uint64_t more = std::min(unplaced_, tier.usable_bytes - placed_[at]);
    if (more < unplaced_) more -= more % kBlockBytes;
    const double saved = problem_.store.of(unplaced_) - problem_.store.of(unplaced_ - more);
    if (tier.place.of(placed_[at] + more) - tier.place.of(placed_[at]) > saved) continue;
    placed_[at] += more;
    unplaced_ -= more;
  }
}

Placement Solver::placement() const {
  [[maybe_unused]] std::uint64_t decided = unplaced_;
  for (std::size_t at = 0; at < problem_.count; ++at) decided += placed_[at];
  CAIRN_DCHECK(decided == problem_.bytes);
  Placement result;
  result.seconds = room_cost_ + problem_.store.of(unplaced_);
  result.add(PlacementStep::Kind::kMakeRoom, problem_.tiers[room_tier_].id, room_bytes_);
  for (std::size_t at = 0; at < problem_.count; ++at) {
    result.add(PlacementStep::Kind::kPlace, problem_.tiers[at].id, placed_[at]);
    result.seconds += problem_.tiers[at].place.of(placed_[at]);
  }
  return result;
}

}  // namespace

std::uint64_t granule_of(std::uint64_t request_bytes) {
  if (request_bytes <= kBlockBytes) return std::max<std::uint64_t>(request_bytes, 1);
  const std::uint64_t blocks = (request_bytes - 1) / kBlockBytes + 1;
  return ((blocks - 1) / kGranulesMax + 1) * kBlockBytes;
}

Placement solve_placement(const PlacementProblem& problem) {
  if (problem.bytes == 0) return {};
  return Solver(problem).run();
}

PlacementProblem problem_of(std::span<const TierView> tiers, const PlacementRequest& request) {
  PlacementProblem problem;
  problem.bytes = request.bytes;
  for (const TierView& view : tiers) {
    if (view.id < request.fastest || problem.count == kTiersMax) continue;
    SolverTier& tier = problem.tiers[problem.count++];
    tier.id = view.id;
    tier.usable_bytes = view.usable_bytes();
    tier.movable_bytes =
        view.capacity_bytes > view.free_bytes ? view.capacity_bytes - view.free_bytes : 0;
  }
  return problem;
}

double seconds_per_byte(double bandwidth) {
  return bandwidth > 0 && std::isfinite(1 / bandwidth) ? 1 / bandwidth : 1;
}

double seconds_per_access(double latency) {
  return latency > 0 && std::isfinite(latency) ? latency : 0;
}

double move_share_of(const PlacementRequest& request) {
  return request.move_share >= 0 ? std::min(request.move_share, 1.0) : 0;
}

AccessCost slower_than_any_tier(const PlacementProblem& problem) {
  const std::uint64_t piece = std::clamp<std::uint64_t>(problem.bytes, 1, kBlockBytes);
  AccessCost store;
  double dearest = 0;
  for (std::size_t at = 0; at < problem.count; ++at) {
    const SolverTier& tier = problem.tiers[at];
    store.fixed += tier.place.fixed;
    dearest = std::max(dearest, tier.place.of(piece));
  }
  store.per_byte = 4 * dearest / static_cast<double>(piece);
  return store;
}

}  // namespace cairn
