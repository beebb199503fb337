// SPDX-License-Identifier: Apache-2.0
#include "base/testing/fault_script.h"

#include <chrono>
#include <thread>

#include "base/check.h"

namespace cairn::testing {

void FaultScript::plan(const Plan& plan) {
  CAIRN_CHECK(plan.kind < kKindsMax);
  const std::lock_guard lock(mutex_);
  plans_.push_back(plan);
}

void FaultScript::heal() {
  const std::lock_guard lock(mutex_);
  plans_.clear();
  ++healed_;
  changed_.notify_all();
}

void FaultScript::await_hanging(unsigned count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return hanging_ >= count; });
}

unsigned FaultScript::count(unsigned kind) const {
  const std::lock_guard lock(mutex_);
  return counts_[kind];
}

FaultScript::Fate FaultScript::next(unsigned kind) {
  std::unique_lock lock(mutex_);
  const unsigned number = ++counts_[kind];
  Plan decided{kind, {}, {}};
  for (const Plan& plan : plans_) {
    const bool is_named =
        number >= plan.calls.first && number - plan.calls.first < plan.calls.times;
    if (plan.kind == kind && is_named) decided = plan;
  }
  if (decided.hangs) {
    ++hanging_;
    changed_.notify_all();
    changed_.wait(lock, [this, before = healed_] { return healed_ != before; });
    --hanging_;
  }
  lock.unlock();
  if (decided.delay_ms != 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(decided.delay_ms));
  return decided.fate;
}

}  // namespace cairn::testing
