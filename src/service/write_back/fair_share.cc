// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/fair_share.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::node {

static_assert(FairShare::kWeightDefault >= 1);
static_assert(FairShare::kWeightDefault <= FairShare::kWeightMax);

void FairShare::set_weight(std::uint32_t run, std::uint32_t weight) {
  Account& account = accounts_[run];
  account.weight = std::clamp(weight, std::uint32_t{1}, kWeightMax);
  account.time = std::max(account.time, now_);
}

void FairShare::forget(std::uint32_t run) { accounts_.erase(run); }

std::uint32_t FairShare::weight_of(std::uint32_t run) const {
  const auto found = accounts_.find(run);
  return found == accounts_.end() ? kWeightDefault : found->second.weight;
}

std::uint64_t FairShare::stored_bytes(std::uint32_t run) const {
  const auto found = accounts_.find(run);
  return found == accounts_.end() ? 0 : found->second.stored;
}

// Silence earns nothing.
double FairShare::time_of(std::uint32_t run) const {
  const auto found = accounts_.find(run);
  return found == accounts_.end() ? now_ : std::max(found->second.time, now_);
}

std::size_t FairShare::choose(std::span<const Candidate> candidates) {
  CAIRN_CHECK(!candidates.empty());
  double least = time_of(candidates.front().run);
  for (const Candidate& candidate : candidates) least = std::min(least, time_of(candidate.run));
  const double slack = static_cast<double>(kSlackBytes) / kWeightDefault;
  std::size_t best = candidates.size();
  for (std::size_t at = 0; at < candidates.size(); ++at) {
    const double time = time_of(candidates[at].run);
    if (time > least + slack) continue;
    if (best == candidates.size()) {
      best = at;
      continue;
    }
    const bool best_in_io = candidates[best].in_io;
    const bool calmer = best_in_io && !candidates[at].in_io;
    if (calmer || (best_in_io == candidates[at].in_io && time < time_of(candidates[best].run)))
      best = at;
  }
  now_ = std::max(now_, least);
  CAIRN_CHECK(best < candidates.size());
  return best;
}

void FairShare::charge(std::uint32_t run, std::uint64_t bytes) {
  const double start = time_of(run);
  Account& account = accounts_[run];
  CAIRN_CHECK(account.weight != 0);
  account.time = start + static_cast<double>(bytes) / account.weight;
}

}  // namespace cairn::node
