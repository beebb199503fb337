// SPDX-License-Identifier: Apache-2.0
#include "service/control/learning_report.h"

#include "policy/prefetch/chooser.h"
#include "service/fetching/prefetcher.h"
#include "service/learning/event_reader.h"
#include "service/learning/learned_replacement.h"
#include "service/plugins/predictor_plugin.h"

namespace cairn::node {

namespace {

std::string predictor_name(const NodeContext& context, unsigned number) {
  if (number == Chooser::kSupplied && context.predictor != nullptr)
    return context.predictor->name();
  return Prefetcher::predictor_name(number);
}

}  // namespace

Json fetches_json(const NodeContext& context) {
  Json list = Json::array();
  for (unsigned number = 0; number < FetchJournal::kPredictorsMax; ++number) {
    const FetchJournal::Line& line = context.memory->fetches().of(number);
    const std::uint64_t fetched = line.fetched_bytes.load(std::memory_order_relaxed);
    if (fetched == 0) continue;
    const std::uint64_t used = line.used_bytes.load(std::memory_order_relaxed);
    const std::uint64_t evicted = line.evicted_unused_bytes.load(std::memory_order_relaxed);
    list.push_back({{"predictor", predictor_name(context, number)},
                    {"fetched_bytes", fetched},
                    {"used_bytes", used},
                    {"late_bytes", line.late_bytes.load(std::memory_order_relaxed)},
                    {"evicted_unused_bytes", evicted},
                    {"below_bytes", line.below_bytes.load(std::memory_order_relaxed)},
                    {"unused_bytes", fetched > used + evicted ? fetched - used - evicted : 0}});
  }
  return list;
}

Json remembered_json(const NodeContext& context) {
  const auto counts = context.prefetcher->kept_orders();
  if (!counts) return Json::object();
  return {{"directory", context.config->remember_directory}, {"files", counts->fetched}};
}

Json replacement_json(const NodeContext& context) {
  Json list = Json::array();
  if (context.learned == nullptr) return list;
  for (unsigned tier = 0; tier < context.memory->tier_count(); ++tier) {
    const auto report = context.learned->report(static_cast<TierId>(tier));
    if (report.references == 0) continue;
    list.push_back({{"tier", tier_name(*context.config, tier)},
                    {"expert", context.learned->name()},
                    {"follows", report.follows},
                    {"references", report.references},
                    {"misses", report.misses},
                    {"known_ahead", report.known_ahead}});
  }
  return list;
}

Json events_json(const NodeContext& context) {
  const EventReader::Counts counts = context.events->counts();
  return {{"passed_on", counts.passed_on}, {"lost", counts.lost}};
}

}  // namespace cairn::node
