// SPDX-License-Identifier: Apache-2.0
#include "cli/top/rate_history.h"

#include "base/check.h"
#include "cli/node/json_fields.h"

namespace cairn::cli {

RateCounters rate_counters(const nlohmann::json& status) {
  const nlohmann::json& counters = member(status, "counters");
  RateCounters result;
  result.bytes = {unsigned_field(counters, "read_bytes"), unsigned_field(counters, "write_bytes"),
                  unsigned_field(counters, "flushed_bytes"), 0};
  for (const nlohmann::json& line : member(status, "fetches"))
    result.bytes[static_cast<unsigned>(Rate::kFetch)] += unsigned_field(line, "fetched_bytes");
  result.uptime_seconds = number_field(status, "uptime_seconds");
  result.service = unsigned_field(status, "service_pid");
  return result;
}

void RateHistory::add(const RateCounters& now) {
  // The counters of a service that was started anew may begin at 0, and so may its clock.
  const bool is_same = last_ && last_->service == now.service;
  const double seconds = is_same ? now.uptime_seconds - last_->uptime_seconds : 0;
  for (unsigned rate = 0; rate < kRates && last_; ++rate) {
    const bool grows = seconds > 0 && now.bytes[rate] >= last_->bytes[rate];
    rates_[rate].push_back(
        grows ? static_cast<double>(now.bytes[rate] - last_->bytes[rate]) / seconds : 0);
    if (rates_[rate].size() > kKept) rates_[rate].pop_front();
    CAIRN_CHECK(rates_[rate].back() >= 0 && rates_[rate].size() <= kKept);
  }
  last_ = now;
}

}  // namespace cairn::cli
