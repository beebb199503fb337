// SPDX-License-Identifier: Apache-2.0
#include "service/control/learning_report.h"

namespace cairn::node {

Json LearningReport::fetches() const {
  Json list = Json::array();
  if (prefetcher_ == nullptr) return list;
  for (unsigned number = 0; number < FetchJournal::kPredictorsMax; ++number) {
    const FetchJournal::Line& line = memory_.fetches().of(number);
    const std::uint64_t fetched = line.fetched_bytes.load(std::memory_order_relaxed);
    if (fetched == 0) continue;
    const std::uint64_t used = line.used_bytes.load(std::memory_order_relaxed);
    const std::uint64_t evicted = line.evicted_unused_bytes.load(std::memory_order_relaxed);
    list.push_back({{"predictor", prefetcher_->predictor_name(number)},
                    {"fetched_bytes", fetched},
                    {"used_bytes", used},
                    {"late_bytes", line.late_bytes.load(std::memory_order_relaxed)},
                    {"evicted_unused_bytes", evicted},
                    {"below_bytes", line.below_bytes.load(std::memory_order_relaxed)},
                    {"unused_bytes", fetched > used + evicted ? fetched - used - evicted : 0}});
  }
  return list;
}

Json LearningReport::remembered() const {
  if (prefetcher_ == nullptr) return Json::object();
  const auto counts = prefetcher_->kept_orders();
  if (!counts) return Json::object();
  return {{"directory", config_.remember_directory}, {"files", counts->fetched}};
}

Json LearningReport::replacement() const {
  Json list = Json::array();
  if (learned_ == nullptr) return list;
  for (unsigned tier = 0; tier < memory_.tier_count(); ++tier) {
    const auto report = learned_->report(static_cast<TierId>(tier));
    if (report.references == 0) continue;
    list.push_back({{"tier", tier_name(config_, tier)},
                    {"expert", learned_->name()},
                    {"follows", report.follows},
                    {"references", report.references},
                    {"misses", report.misses},
                    {"known_ahead", report.known_ahead}});
  }
  return list;
}

Json LearningReport::events() const {
  const EventReader::Counts counts = events_.counts();
  return {{"passed_on", counts.passed_on}, {"lost", counts.lost}};
}

}  // namespace cairn::node
