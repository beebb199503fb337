// SPDX-License-Identifier: Apache-2.0
// Miss-ratio curves of any expert of replacement, and of MIN, by miniature simulations: a cache of
// C pages behaves towards a stream as one of R * C pages does towards the references to a share R
// of the pages, chosen by hash (Waldspurger, Saemundsson, Ahmad, Park: "Cache modeling and
// optimization using miniature simulations", USENIX ATC 2017, section 3). On a whole stream they
// are ordinary simulations, and exact at their capacities.
//
// How many references the stream has is known, and how many the sample should have. The difference
// corrects the sampled misses, by the slope of misses over references of its pages: a regression
// estimator (Deville, Sarndal: "Calibration estimators in survey sampling", JASA 87, 1992). Where a
// hot page makes the difference, the slope is near 0, and the correction is that of SHARDS-adj.
//
// A curve has one point for each capacity asked for that differs in the miniature. It lies at the
// capacity that the miniature stands for, and straight lines join the points. The
// estimate is coarse for capacities of less than ten pages in the miniature, or of a hundred for
// experts that share a cache out, such as s3-fifo and lirs. An expert that learns has fewer
// references to learn from, so its miniature is behind it in a short stream.
//
// Errors: measured in docs/models.md, "Miss ratios". Cost: each capacity is a simulation of all
// sampled references. Thread safety: pure functions of the stream. Ownership: while it runs, an
// expert's memory; MIN needs another 20 bytes for each sampled reference.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/miss_ratios/miss_ratio_curve.h"
#include "policy/miss_ratios/sampled_stream.h"
#include "policy/replacement/experts.h"

namespace cairn {

struct ExpertCurve {
  const char* expert;
  MissRatioCurve curve;
  // The miniature is a poor model of the expert, with errors of several percent: what it decides
  // depends on the one place of the newest page, which does not shrink with the cache.
  bool is_rough = false;
};

inline constexpr const char* kMinName = "min";

// Requires: capacities ascend. Returns: the empty curve for a stream without references; else one
// that starts at capacity 0, which misses always.
MissRatioCurve expert_curve(const SampledStream& stream, const ExpertMaker& maker,
                            std::span<const std::uint64_t> capacities);
// The same of MIN, which knows all that is to come: no policy misses less (Belady: "A study of
// replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966).
MissRatioCurve min_curve(const SampledStream& stream, std::span<const std::uint64_t> capacities);
// All experts of policy/replacement/experts.h and compared_experts.h, and MIN as the last.
std::vector<ExpertCurve> expert_curves(const SampledStream& stream,
                                       std::span<const std::uint64_t> capacities);

}  // namespace cairn
