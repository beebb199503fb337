// SPDX-License-Identifier: Apache-2.0
#include "cli/trace/miss_estimate.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "cli/trace/page_references.h"
#include "policy/miss_ratios/expert_curves.h"
#include "policy/miss_ratios/sampled_pages.h"
#include "policy/miss_ratios/sampled_stream.h"
#include "policy/replacement/compared_experts.h"

namespace cairn::cli {
namespace {

const ExpertMaker* maker_of(const std::string& name) {
  for (const ExpertMaker& maker : kExpertMakers) {
    if (name == maker.name) return &maker;
  }
  for (const ExpertMaker& maker : kComparedExpertMakers) {
    if (name == maker.name) return &maker;
  }
  return nullptr;
}

// By a sample the pages may be fewer than the longest of LRU's distances, estimated by it as well.
std::vector<std::uint64_t> doubled_capacities(double pages, const MissRatioCurve& lru) {
  std::vector<std::uint64_t> capacities;
  auto all = static_cast<std::uint64_t>(std::llround(pages));
  if (!lru.is_empty()) all = std::max(all, lru.points().back().capacity);
  for (std::uint64_t capacity = 1; capacity < all; capacity *= 2) capacities.push_back(capacity);
  if (all > 0) capacities.push_back(all);
  CAIRN_CHECK(std::ranges::is_sorted(capacities));
  return capacities;
}

}  // namespace

Result<MissEstimate> estimate_misses(TraceSource& trace, const MissOptions& options) {
  for (const std::string& name : options.experts) {
    if (maker_of(name) == nullptr)
      return Status(StatusCode::kInvalid, "no expert is called \"" + name + "\"");
  }
  SampledPages sample;
  SampledStream stream;
  PageReferences references(options.page_bytes);
  for (TraceEvent event; trace.next(&event);) {
    references.add(event, [&](std::uint64_t key) {
      sample.reference(key);
      stream.reference(key);
    });
  }
  if (!trace.status()) return trace.status();
  MissEstimate estimate;
  estimate.references = sample.references();
  estimate.simulated_references = stream.references();
  estimate.pages = sample.pages();
  estimate.hot_pages = sample.hot_set_pages();
  estimate.sampled_share = sample.rate();
  estimate.lru = sample.curve();
  estimate.capacities = doubled_capacities(estimate.pages, estimate.lru);
  for (const std::string& name : options.experts)
    estimate.others.push_back({name, expert_curve(stream, *maker_of(name), estimate.capacities)});
  estimate.others.push_back({kBestPossible, min_curve(stream, estimate.capacities)});
  return estimate;
}

}  // namespace cairn::cli
