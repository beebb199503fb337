// SPDX-License-Identifier: Apache-2.0
// A placement policy from a shared object (cairn/policy_plugin.h), which is not trusted to behave.
//
// All code of the object (its constructors, the entry point, solve()) runs on a thread of its own.
// A call that does not return in time, throws, fails or answers what cannot be carried out
// (policy/placement/placement_check.h) is answered by the fallback policy, and the listener gets
// the reason in words for the log. While a late call still runs, the fallback decides at once; when
// it returns after all, the policy may try again. After kStrikesMax such calls the fallback always
// decides. A call that never returns costs idle processor time only (SCHED_IDLE), because a thread
// cannot be ended without what it holds. A crash of the object is a crash of the service.
//
// Thread safety: solve() from any thread; of two at once, one is answered by the fallback. The
// listener is called by the thread that called solve(), with no lock held. Ownership: the fallback
// must outlive the policy. The object stays loaded until the process ends: a thread may be in it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "policy/placement/placement_policy.h"

namespace cairn {

class PluginPolicy final : public PlacementPolicy {
 public:
  static constexpr std::chrono::milliseconds kTimeLimit{50};
  static constexpr unsigned kStrikesMax = 3;

  using Listener = std::function<void(const std::string& complaint)>;

  // Errors: kNotFound (no such file), kInvalid (no shared object, no entry point, nonsense in the
  // description, throws), kIncompatible (another version of the interface), kUnavailable (does not
  // return in time, no thread). The message names the path.
  static Result<std::unique_ptr<PluginPolicy>> load(
      const std::string& path, const PlacementPolicy& fallback, Listener listener,
      std::chrono::milliseconds time_limit = kTimeLimit);

  ~PluginPolicy();
  PluginPolicy(const PluginPolicy&) = delete;
  PluginPolicy& operator=(const PluginPolicy&) = delete;

  const char* name() const override;
  Placement solve(std::span<const TierView> tiers, const PlacementRequest& request) const override;
  PlanOrder plan_order() const override;

  // False once the fallback always decides.
  bool is_trusted() const;

 private:
  struct Plugin;
  PluginPolicy(std::shared_ptr<Plugin> plugin, const PlacementPolicy& fallback, Listener listener,
               std::chrono::milliseconds time_limit);

  Placement fall_back(std::span<const TierView> tiers, const PlacementRequest& request,
                      const std::string& why) const;

  std::shared_ptr<Plugin> plugin_;
  const PlacementPolicy& fallback_;
  Listener listener_;
  std::chrono::milliseconds time_limit_;
};

}  // namespace cairn
