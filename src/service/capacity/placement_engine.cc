// SPDX-License-Identifier: Apache-2.0
#include "service/capacity/placement_engine.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/check.h"
#include "policy/placement/policies.h"

namespace cairn::node {
namespace {

bool places_by_hotness(const PlacementPolicy& policy) {
  return std::strcmp(policy.name(), "hot-data") == 0;
}

// Built as a plugin, because of the library that it needs.
constexpr const char* kLinearProgramme = "minimize-io-time";

// A new file has no hotness yet, only a size. While more than half of the RAM tier is in use, its
// blocks beyond a small part of that tier go below. 0: no limit.
std::uint32_t blocks_of_small_file(std::span<const TierView> tiers) {
  constexpr std::uint64_t kPart = 256;
  constexpr std::uint64_t kBlocksMin = 16;
  if (tiers.size() < 2 || tiers[0].free_bytes > tiers[0].capacity_bytes / 2) return 0;
  return static_cast<std::uint32_t>(
      std::max(tiers[0].capacity_bytes / kBlockBytes / kPart, kBlocksMin));
}

// What part of the time of a move out of RAM a writer waits for (PlacementRequest::move_share): all
// devices below take part in it, and the writer fills the room while more is made.
double share_of_moves(std::span<const TierView> tiers) {
  double below = 0;
  double fastest_below = 0;
  for (const TierView& tier : tiers.subspan(1)) {
    if (tier.usable_bytes() < kBlockBytes) continue;
    below += tier.bandwidth;
    fastest_below = std::max(fastest_below, tier.bandwidth);
  }
  if (below <= 0) return 1;
  const double place = 1 / tiers[0].bandwidth;
  const double move = std::max(1 / below, place);
  return std::clamp((move - place) * fastest_below, 0.0, 1.0);
}

// How many slabs are made free at once: fewer would not keep the devices busy.
std::uint32_t slabs_of_room(const TierView& tier, std::uint64_t wanted_bytes) {
  constexpr std::uint64_t kRoomBytes = 32 << 20;
  constexpr std::uint64_t kPartOfTier = 4;
  const std::uint64_t bytes =
      std::max(wanted_bytes, std::min(kRoomBytes, tier.capacity_bytes / kPartOfTier));
  return static_cast<std::uint32_t>(bytes / kBlockBytes);
}

void set_bit(std::atomic<std::uint32_t>& bits, std::uint32_t bit, bool is_set) {
  if (is_set) {
    bits.fetch_or(bit, std::memory_order_relaxed);
  } else {
    bits.fetch_and(~bit, std::memory_order_relaxed);
  }
}

// lib/cairn beside bin/cairn.
std::string shipped_plugin(const char* name) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return (program.parent_path().parent_path() / "lib/cairn" / (std::string(name) + ".so")).string();
}

std::string known_policies() {
  std::string names = kLinearProgramme;
  for (const PlacementPolicy* policy : placement_policies())
    names += ", " + std::string(policy->name());
  return names;
}

}  // namespace

PlacementEngine::PlacementEngine(const NodeMemory& memory,
                                 std::vector<profiler::TierFigures> figures,
                                 PluginPolicy::Listener complain)
    : memory_(memory),
      figures_(std::move(figures)),
      complain_(std::move(complain)),
      hotness_(memory) {
  default_policy_ = placement_policies().front();
  slots_.reserve(kPlansMax);
  announce_bandwidths();
}

// Requires: the mutex.
Result<const PlacementPolicy*> PlacementEngine::find(const std::string& name) {
  if (const PlacementPolicy* policy = placement_policy_named(name)) return policy;
  const std::string path = name == kLinearProgramme ? shipped_plugin("minimize_io_time") : name;
  if (path.find('/') == std::string::npos) {
    return Status(StatusCode::kNotFound, "no placement policy is named \"" + name +
                                             "\"; there are " + known_policies() +
                                             ", or the path of a plugin");
  }
  auto plugin = PluginPolicy::load(path, *placement_policies().front(), complain_);
  if (!plugin) return plugin.status();
  plugins_.push_back(std::move(plugin.value()));
  return plugins_.back().get();
}

Result<std::uint8_t> PlacementEngine::number_of(const std::string& name) {
  const std::lock_guard lock(mutex_);
  for (std::size_t number = 0; number < slots_.size(); ++number) {
    if (slots_[number].name == name) return static_cast<std::uint8_t>(number);
  }
  if (slots_.size() == kPlansMax) {
    return Status(StatusCode::kExhausted,
                  "a node works with " + std::to_string(kPlansMax) + " placement policies at once");
  }
  auto policy = find(name);
  if (!policy) return policy.status();
  Slot slot;
  slot.name = name;
  slot.policy = *policy;
  if (slots_.empty()) default_policy_ = slot.policy;
  slots_.push_back(slot);
  CAIRN_CHECK(slots_.size() <= kPlansMax);
  solve(static_cast<unsigned>(slots_.size() - 1), views());
  return static_cast<std::uint8_t>(slots_.size() - 1);
}

std::string PlacementEngine::name_of(std::uint8_t number) const {
  const std::lock_guard lock(mutex_);
  return number < slots_.size() ? slots_[number].name : std::string();
}

profiler::TierFigures PlacementEngine::figures_of(unsigned tier) const {
  const std::lock_guard lock(figures_mutex_);
  return tier < figures_.size() ? figures_[tier] : profiler::TierFigures();
}

void PlacementEngine::set_figures(unsigned tier, const profiler::TierFigures& figures) {
  const std::lock_guard lock(figures_mutex_);
  if (tier < figures_.size()) figures_[tier] = figures;
  announce_bandwidths();
}

// Requires: the figures' mutex, or that nobody else is there yet.
void PlacementEngine::announce_bandwidths() const {
  for (unsigned tier = 0; tier < std::min<std::size_t>(figures_.size(), kTiersMax); ++tier) {
    memory_.device_board().bandwidth[tier].store(figures_[tier].write_bandwidth,
                                                 std::memory_order_relaxed);
  }
}

std::vector<TierView> PlacementEngine::views() const {
  const std::lock_guard lock(figures_mutex_);
  std::vector<TierView> tiers;
  for (unsigned index = 0; index < memory_.tiers_for(BufferingMode::kAsync); ++index) {
    const BucketPool& pool = memory_.pool(static_cast<TierId>(index));
    TierView view;
    view.id = static_cast<TierId>(index);
    if (memory_.takes_blocks(view.id)) {  // else as one without room
      view.capacity_bytes = std::uint64_t{pool.slab_count()} * kBlockBytes;
      view.free_bytes = std::uint64_t{pool.common_slabs()} * kBlockBytes;
    }
    CAIRN_CHECK(index < figures_.size());
    view.bandwidth = figures_[index].write_bandwidth;
    view.latency = figures_[index].write_latency;
    view.hotness_min = hotness_min_[index].load(std::memory_order_relaxed);
    tiers.push_back(view);
  }
  return tiers;
}

// Requires: the mutex.
void PlacementEngine::solve(unsigned number, const std::vector<TierView>& tiers) {
  CAIRN_CHECK(number < slots_.size());
  Slot& slot = slots_[number];
  // A small window, so that a tier is used to its end before the plan divides.
  PlacementRequest window;
  window.bytes = kPlanWindowBytes;
  // A multiple of every number of tiers, so that taking turns goes on where it was.
  constexpr std::uint64_t kTurns = 840 * PublishedPlan::kElements;
  window.sequence = kTurns * slot.sequence++;
  const bool by_hotness = places_by_hotness(*slot.policy);
  // What has just been written is used just now.
  if (by_hotness) window.unit.hotness = std::numeric_limits<double>::max();
  // What a colder block gains by leaving is another question than what a writer waits for.
  if (!by_hotness && !tiers.empty()) window.move_share = share_of_moves(tiers);
  slot.plan = make_plan(*slot.policy, tiers, window);
  slot.is_solved = true;
  announce(number, tiers);
}

// Tells the clients.
void PlacementEngine::announce(unsigned number, std::span<const TierView> tiers) const {
  CAIRN_CHECK(number < slots_.size());
  const Slot& slot = slots_[number];
  CAIRN_CHECK(slot.is_solved);
  PlacementBoard& board = memory_.placement_board();
  board.plans[number].store(slot.plan.pattern.tiers);
  board.memory_blocks[number].store(places_by_hotness(*slot.policy) ? blocks_of_small_file(tiers)
                                                                    : 0);
  const std::uint32_t bit = 1U << number;
  set_bit(board.keeps_together, bit, slot.plan.order == PlanOrder::kPerUnit);
  const auto rooms = slot.plan.rooms_to_make();
  set_bit(board.makes_room, bit,
          std::any_of(rooms.begin(), rooms.end(),
                      [](const PlacementStep& step) { return step.tier == TierId::kMemory; }));
}

std::array<std::uint32_t, kTiersMax> PlacementEngine::rooms_wanted() const {
  std::array<std::uint32_t, kTiersMax> wanted{};
  const std::lock_guard lock(mutex_);
  for (const Slot& slot : slots_) {
    for (const PlacementStep& step : slot.plan.rooms_to_make()) {
      const std::uint32_t tier = raw(step.tier);
      wanted[tier] = std::max(wanted[tier], slabs_of_room(slot.plan.tiers[tier], step.bytes));
    }
  }
  return wanted;
}

void PlacementEngine::refresh() {
  const std::vector<TierView> tiers = views();
  const std::lock_guard lock(mutex_);
  for (unsigned number = 0; number < slots_.size(); ++number) {
    if (!slots_[number].is_solved || is_stale(slots_[number].plan, tiers)) solve(number, tiers);
  }
  announce_thresholds(tiers);
}

// Clients wake the organizer when the room of a tier leaves the band for which the plans were made.
void PlacementEngine::announce_thresholds(const std::vector<TierView>& tiers) {
  PlacementBoard& board = memory_.placement_board();
  for (const TierView& tier : tiers) {
    const auto slabs = static_cast<std::uint32_t>(tier.capacity_bytes / kBlockBytes);
    const std::uint32_t step = std::max<std::uint32_t>(slabs / kPlanStepsPerTier, 1);
    const auto free = static_cast<std::uint32_t>(tier.free_bytes / kBlockBytes);
    board.plan_low_slabs[raw(tier.id)].store(free > step ? free - step : 0,
                                             std::memory_order_relaxed);
    board.plan_high_slabs[raw(tier.id)].store(free + step, std::memory_order_relaxed);
  }
}

bool PlacementEngine::ranks() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const Slot& slot) { return places_by_hotness(*slot.policy); });
}

std::vector<RisingFile> PlacementEngine::rank() {
  std::uint32_t policies = 0;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t number = 0; number < slots_.size(); ++number) {
      if (places_by_hotness(*slots_[number].policy)) policies |= 1U << number;
    }
  }
  if (policies == 0) return {};
  std::vector<TierView> tiers = views();
  // What the organizer keeps free is nobody's home.
  const OrganizerBoard& board = memory_.organizer_board();
  for (TierView& tier : tiers)
    tier.reserve_bytes = std::uint64_t{board.low_slabs[raw(tier.id)].load()} * kBlockBytes;
  std::vector<RisingFile> rising = hotness_.rank(policies, tiers);
  for (std::size_t tier = 0; tier < tiers.size(); ++tier)
    hotness_min_[tier].store(tiers[tier].hotness_min, std::memory_order_relaxed);
  return rising;
}

}  // namespace cairn::node
