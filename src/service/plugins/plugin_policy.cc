// SPDX-License-Identifier: Apache-2.0
#include "service/plugins/plugin_policy.h"

#include <array>
#include <atomic>
#include <utility>

#include "policy/placement/placement_check.h"
#include "service/plugins/plugin_object.h"
#include "service/plugins/policy_conversion.h"

namespace cairn {
namespace {

// Loading reads files, so it may take as long as so many decisions.
constexpr int kLoadLimits = 20;

constexpr PluginKind<cairn_placement_policy> kKind = {
    CAIRN_POLICY_ENTRY_POINT, CAIRN_POLICY_ABI_VERSION, &PluginGuard::describe_policy};

// The data that one call reads and writes. A late call keeps it.
struct Call {
  std::array<cairn_tier_view, kTiersMax> tiers{};
  std::uint32_t tier_count = 0;
  cairn_placement_request request{};
  cairn_placement answer{};
  int failure = 0;
  PluginGuard::Thrown thrown;
};

}  // namespace

// Constant after loading, but for the strikes.
struct PluginPolicy::Plugin : PluginObject {
  explicit Plugin(const std::string& path) : PluginObject("placement policy", path) {}

  PlanOrder order = PlanOrder::kWindow;
  PluginGuard::Solve solve = nullptr;
  std::atomic<unsigned> strikes{0};

  Status read();
};

Status PluginPolicy::Plugin::read() {
  const auto found = description(kKind);
  if (!found) return found.status();
  const cairn_placement_policy& policy = **found;
  if (policy.solve == nullptr) return fault("has no function to solve with");
  if (policy.plan_order > CAIRN_PLAN_PER_UNIT) return fault("has an unknown plan order");
  order = static_cast<PlanOrder>(policy.plan_order);
  solve = policy.solve;
  return Status::ok();
}

Result<std::unique_ptr<PluginPolicy>> PluginPolicy::load(const std::string& path,
                                                         const PlacementPolicy& fallback,
                                                         Listener listener,
                                                         std::chrono::milliseconds time_limit) {
  const auto plugin = std::make_shared<Plugin>(path);
  CAIRN_RETURN_IF_ERROR(
      plugin->load(time_limit * kLoadLimits, [plugin] { return plugin->read(); }));
  return std::unique_ptr<PluginPolicy>(
      new PluginPolicy(plugin, fallback, std::move(listener), time_limit));
}

PluginPolicy::PluginPolicy(std::shared_ptr<Plugin> plugin, const PlacementPolicy& fallback,
                           Listener listener, std::chrono::milliseconds time_limit)
    : plugin_(std::move(plugin)),
      fallback_(fallback),
      listener_(std::move(listener)),
      time_limit_(time_limit) {}

PluginPolicy::~PluginPolicy() = default;

const char* PluginPolicy::name() const { return plugin_->name().c_str(); }

PlanOrder PluginPolicy::plan_order() const { return plugin_->order; }

bool PluginPolicy::is_trusted() const { return plugin_->strikes.load() < kStrikesMax; }

Placement PluginPolicy::solve(std::span<const TierView> tiers,
                              const PlacementRequest& request) const {
  if (!is_trusted() || tiers.size() > kTiersMax) return fallback_.solve(tiers, request);
  const auto call = std::make_shared<Call>();
  for (const TierView& tier : tiers) call->tiers[call->tier_count++] = to_plugin(tier);
  call->request = to_plugin(request);
  const auto job = [guard = &plugin_->guard(), solve = plugin_->solve, call] {
    const PluginGuard::Problem problem{call->tiers.data(), call->tier_count, &call->request};
    call->failure = guard->solve(solve, problem, &call->answer, &call->thrown);
  };
  std::string thrown;
  switch (plugin_->thread().run(job, time_limit_, &thrown)) {
    case GuardedThread::Outcome::kDone:
      break;
    case GuardedThread::Outcome::kThrew:
      return fall_back(tiers, request, "threw " + thrown);
    case GuardedThread::Outcome::kLate:
      return fall_back(tiers, request, PluginObject::late_text(time_limit_));
    case GuardedThread::Outcome::kBusy:
    case GuardedThread::Outcome::kNoThread:
      // Said when the earlier call was late.
      return fallback_.solve(tiers, request);
  }
  if (call->thrown.text[0] != '\0') {
    return fall_back(tiers, request, std::string("threw ") + call->thrown.text);
  }
  if (call->failure != 0) {
    return fall_back(tiers, request, "failed with " + std::to_string(call->failure));
  }
  Placement placement;
  const char* fault = from_plugin(call->answer, &placement);
  if (fault == nullptr) fault = fault_in(placement, request, tiers);
  if (fault != nullptr) return fall_back(tiers, request, std::string("answer ") + fault);
  plugin_->strikes.store(0);
  return placement;
}

Placement PluginPolicy::fall_back(std::span<const TierView> tiers, const PlacementRequest& request,
                                  const std::string& why) const {
  const bool was_last = plugin_->strikes.fetch_add(1) + 1 >= kStrikesMax;
  if (listener_) {
    listener_(plugin_->title() + " " + why + "; '" + fallback_.name() + "' decides " +
              (was_last ? "from now on" : "in its place this time"));
  }
  return fallback_.solve(tiers, request);
}

}  // namespace cairn
