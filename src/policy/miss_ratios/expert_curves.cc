// SPDX-License-Identifier: Apache-2.0
#include "policy/miss_ratios/expert_curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "policy/replacement/compared_experts.h"

namespace cairn {
namespace {

// What all simulations of one stream share.
struct Miniature {
  explicit Miniature(const SampledStream& stream)
      : pages(stream.numbered_pages()),
        distinct(static_cast<std::uint32_t>(stream.sampled_pages())),
        rate(stream.rate()),
        expected_references(rate * static_cast<double>(stream.references())),
        uses(distinct, 0) {
    CAIRN_DCHECK(distinct <= pages.size());
    for (const PageId page : pages) uses[raw(page)] += 1;
    for (const double count : uses) uses_squared += count * count;
  }

  std::vector<PageId> pages;
  std::uint32_t distinct;
  double rate;
  double expected_references;
  std::vector<double> uses;  // by page
  double uses_squared = 0;

  // `misses` are those of each page. The sample has more references than it should, or fewer; the
  // slope says how many misses go with each of these.
  double ratio_of(const std::vector<std::uint32_t>& misses) const {
    double sum = 0;
    double misses_and_uses = 0;
    for (std::size_t page = 0; page < misses.size(); ++page) {
      CAIRN_DCHECK(misses[page] <= uses[page]);
      sum += misses[page];
      misses_and_uses += misses[page] * uses[page];
    }
    const double slope = misses_and_uses / uses_squared;
    CAIRN_DCHECK(slope <= 1);
    const double surplus = static_cast<double>(pages.size()) - expected_references;
    return std::clamp((sum - slope * surplus) / expected_references, 0.0, 1.0);
  }
  // The miniature's capacity for one of the stream. Beyond all of its pages nothing changes.
  std::uint32_t capacity_for(std::uint64_t capacity) const {
    const double scaled = std::round(static_cast<double>(capacity) * rate);
    return static_cast<std::uint32_t>(std::clamp(scaled, 1.0, static_cast<double>(distinct)));
  }
};

// Those of each page.
std::vector<std::uint32_t> misses_of(Expert& expert, const Miniature& miniature) {
  std::vector<std::uint32_t> misses(miniature.distinct, 0);
  for (const PageId page : miniature.pages) {
    if (!expert.reference(page)) ++misses[raw(page)];
  }
  return misses;
}

std::unique_ptr<Expert> make_min(const Miniature& miniature, std::uint32_t capacity) {
  auto expert = std::make_unique<FarthestFuture>(capacity);
  for (const PageId page : miniature.pages) expert->expect(page);
  CAIRN_DCHECK(expert->known_ahead() == miniature.pages.size());
  return expert;
}

// make(capacity of the miniature) makes an expert.
template <typename Make>
MissRatioCurve simulated_curve(const Miniature& miniature,
                               std::span<const std::uint64_t> capacities, Make&& make) {
  if (miniature.pages.empty()) return {};
  std::vector<MissRatioCurve::Point> points = {{0, 1.0}};
  std::uint32_t last = 0;
  for (const std::uint64_t capacity : capacities) {
    const std::uint32_t scaled = miniature.capacity_for(capacity);
    CAIRN_DCHECK(scaled >= last || capacity == 0);
    if (capacity == 0 || scaled <= last) continue;
    last = scaled;
    const std::unique_ptr<Expert> expert = make(scaled);
    const double ratio = miniature.ratio_of(misses_of(*expert, miniature));
    points.push_back({static_cast<std::uint64_t>(std::llround(scaled / miniature.rate)), ratio});
  }
  return {std::move(points), miniature.ratio_of(std::vector<std::uint32_t>(miniature.distinct, 1))};
}

MissRatioCurve curve_of(const Miniature& miniature, const ExpertMaker& maker,
                        std::span<const std::uint64_t> capacities) {
  return simulated_curve(miniature, capacities, maker.make);
}

// Experts for which the one place of the newest page counts, however large the cache is: mru always
// takes it, and lfu does so while all other pages were used more than once.
constexpr std::array<std::string_view, 2> kOnePlaceExperts = {"mru", "lfu"};

ExpertCurve named_curve(const Miniature& miniature, const ExpertMaker& maker,
                        std::span<const std::uint64_t> capacities) {
  const bool has_one_place = std::find(kOnePlaceExperts.begin(), kOnePlaceExperts.end(),
                                       maker.name) != kOnePlaceExperts.end();
  return {maker.name, curve_of(miniature, maker, capacities), miniature.rate < 1 && has_one_place};
}

MissRatioCurve min_curve_of(const Miniature& miniature, std::span<const std::uint64_t> capacities) {
  return simulated_curve(miniature, capacities,
                         [&](std::uint32_t capacity) { return make_min(miniature, capacity); });
}

}  // namespace

MissRatioCurve expert_curve(const SampledStream& stream, const ExpertMaker& maker,
                            std::span<const std::uint64_t> capacities) {
  return curve_of(Miniature(stream), maker, capacities);
}

MissRatioCurve min_curve(const SampledStream& stream, std::span<const std::uint64_t> capacities) {
  return min_curve_of(Miniature(stream), capacities);
}

std::vector<ExpertCurve> expert_curves(const SampledStream& stream,
                                       std::span<const std::uint64_t> capacities) {
  const Miniature miniature(stream);
  std::vector<ExpertCurve> curves;
  for (const ExpertMaker& maker : kExpertMakers) {
    curves.push_back(named_curve(miniature, maker, capacities));
  }
  for (const ExpertMaker& maker : kComparedExpertMakers) {
    // Without its future it is no expert that one would compare; with it, it is MIN.
    if (std::string_view(maker.name) == "farthest-in-future") continue;
    curves.push_back(named_curve(miniature, maker, capacities));
  }
  curves.push_back({kMinName, min_curve_of(miniature, capacities), false});
  return curves;
}

}  // namespace cairn
