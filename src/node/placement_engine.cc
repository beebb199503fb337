// SPDX-License-Identifier: Apache-2.0
#include "node/placement_engine.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>

#include "placement/policies.h"

namespace cairn::node {
namespace {

bool places_by_hotness(const PlacementPolicy& policy) {
  return std::strcmp(policy.name(), "hot-data") == 0;
}

// Built as a plugin, because of the library that it needs.
constexpr const char* kLinearProgramme = "minimize-io-time";

// Of a new file's hotness only its size is known so far. While more than half of the RAM tier is in
// use, what goes beyond a small part of it goes below. 0: no limit.
std::uint32_t blocks_of_small_file(std::span<const TierView> tiers) {
  constexpr std::uint64_t kPart = 256;
  constexpr std::uint64_t kBlocksMin = 16;
  if (tiers.size() < 2 || tiers[0].free_bytes > tiers[0].capacity_bytes / 2) return 0;
  return static_cast<std::uint32_t>(
      std::max(tiers[0].capacity_bytes / kBlockBytes / kPart, kBlocksMin));
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
}

std::vector<TierView> PlacementEngine::views() const {
  const std::lock_guard lock(figures_mutex_);
  std::vector<TierView> tiers;
  for (unsigned index = 0; index < memory_.tiers_for(BufferingMode::kAsync); ++index) {
    const BucketPool& pool = memory_.pool(static_cast<TierId>(index));
    TierView view;
    view.id = static_cast<TierId>(index);
    view.capacity_bytes = std::uint64_t{pool.slab_count()} * kBlockBytes;
    view.free_bytes = std::uint64_t{pool.common_slabs()} * kBlockBytes;
    view.bandwidth = figures_[index].write_bandwidth;
    view.latency = figures_[index].write_latency;
    view.hotness_min = hotness_min_[index].load(std::memory_order_relaxed);
    tiers.push_back(view);
  }
  return tiers;
}

// Requires: the mutex.
void PlacementEngine::solve(unsigned number, const std::vector<TierView>& tiers) {
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
  slot.plan = make_plan(*slot.policy, tiers, window);
  slot.is_solved = true;
  ControlHeader& header = memory_.header();
  header.plans[number].store(slot.plan.pattern.tiers);
  header.plan_memory_blocks[number].store(by_hotness ? blocks_of_small_file(tiers) : 0);
  const std::uint32_t bit = 1U << number;
  if (slot.plan.order == PlanOrder::kPerUnit) {
    header.plans_by_object.fetch_or(bit, std::memory_order_relaxed);
  } else {
    header.plans_by_object.fetch_and(~bit, std::memory_order_relaxed);
  }
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
  ControlHeader& header = memory_.header();
  for (const TierView& tier : tiers) {
    const auto slabs = static_cast<std::uint32_t>(tier.capacity_bytes / kBlockBytes);
    const std::uint32_t step = std::max<std::uint32_t>(slabs / kPlanStepsPerTier, 1);
    const auto free = static_cast<std::uint32_t>(tier.free_bytes / kBlockBytes);
    header.plan_low_slabs[raw(tier.id)].store(free > step ? free - step : 0,
                                              std::memory_order_relaxed);
    header.plan_high_slabs[raw(tier.id)].store(free + step, std::memory_order_relaxed);
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
  const ControlHeader& header = memory_.header();
  for (TierView& tier : tiers)
    tier.reserve_bytes = std::uint64_t{header.low_slabs[raw(tier.id)].load()} * kBlockBytes;
  std::vector<RisingFile> rising = hotness_.rank(policies, tiers);
  for (std::size_t tier = 0; tier < tiers.size(); ++tier)
    hotness_min_[tier].store(tiers[tier].hotness_min, std::memory_order_relaxed);
  return rising;
}

}  // namespace cairn::node
