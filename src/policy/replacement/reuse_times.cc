// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/reuse_times.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cairn {
namespace {

using Histogram = ReuseTimes::Histogram;

// Noted times keep this share of their weight at each learning.
constexpr double kFading = 0.95;
// Pages that a belief is worth: of all pages, of those seen as often, of a class.
constexpr double kPagesBehindAll = 32;
constexpr double kPagesBehindFrequency = 16;

// How many pages that were seen so often are believed to come back, before anything is known.
double believed_reuse(unsigned frequency) {
  constexpr std::array<double, 4> kShares = {0.3, 0.6, 0.75, 0.85};
  return kShares[std::min<std::size_t>(frequency, kShares.size() - 1)];
}

void add(Histogram& sum, const Histogram& other) {
  for (unsigned bin = 0; bin < ReuseTimes::kBins; ++bin) sum[bin] += other[bin];
}

}  // namespace

unsigned ReuseTimes::bin_of(std::uint64_t age) {
  if (age < 4) return static_cast<unsigned>(age);
  const unsigned octave = 63 - static_cast<unsigned>(std::countl_zero(age));
  const double mantissa =
      static_cast<double>(age) / static_cast<double>(std::uint64_t{1} << octave);
  // Powers of the fourth root of two.
  const unsigned quarter = mantissa >= 1.6817928305074292   ? 3
                           : mantissa >= 1.4142135623730951 ? 2
                           : mantissa >= 1.189207115002721  ? 1
                                                            : 0;
  return std::min(4 * (octave - 1) + quarter, kBins - 1);
}

ReuseTimes::ReuseTimes(std::uint32_t capacity)
    : capacity_(capacity), reused_(kClasses, Histogram{}), index_(kClasses) {
  for (unsigned bin = 0; bin <= kBins; ++bin)
    begin_[bin] = bin < 4 ? bin : std::exp2(2 + (bin - 4) / 4.0);
  double bins = 0;
  for (unsigned bin = 0; bin < kBins; ++bin) {
    even_[bin] = begin_[bin] < 16.0 * capacity + 64 ? 1 : 0;
    bins += even_[bin];
  }
  for (double& share : even_) share /= bins;
  learn(std::vector<Histogram>(kClasses, Histogram{}));
}

unsigned ReuseTimes::class_of(std::uint32_t times_seen, std::uint64_t interval) const {
  if (times_seen <= 1) return 0;
  const auto frequency = static_cast<unsigned>(std::bit_width(times_seen - 1));
  const unsigned distance = interval < capacity_ / 4   ? 1
                            : interval < capacity_     ? 2
                            : interval < 4 * capacity_ ? 3
                                                       : 4;
  return std::min(frequency, kFrequencies - 1) * kIntervals + distance;
}

void ReuseTimes::note_reuse(unsigned page_class, std::uint64_t age) {
  reused_[page_class][bin_of(age)] += 1;
}

// The mass of reuse in each bin: the hazard of a bin is its reuses over the pages that were still
// waited for there, with the prior's hazard as that of so many pages more.
Histogram ReuseTimes::estimate(const Histogram& reused, const Histogram& waiting,
                               const Prior& prior) const {
  double at_risk = 0;
  for (unsigned bin = 0; bin < kBins; ++bin) at_risk += reused[bin] + waiting[bin];
  double prior_survival = 1;
  double survival = 1;
  Histogram mass{};
  for (unsigned bin = 0; bin < kBins; ++bin) {
    const double prior_hazard =
        prior_survival > 1e-9 ? std::min(1.0, prior.mass[bin] / prior_survival) : 0;
    const double believed = prior.pages * prior_survival;
    // Those whose waiting is of this age have been at risk in half of the bin.
    const double seen = at_risk - 0.5 * waiting[bin];
    const double hazard =
        std::min(1.0, (reused[bin] + believed * prior_hazard) / (seen + believed + 1e-12));
    mass[bin] = survival * hazard;
    survival -= mass[bin];
    prior_survival -= prior.mass[bin];
    at_risk -= reused[bin] + waiting[bin];
  }
  return mass;
}

void ReuseTimes::learn(std::vector<Histogram> waiting) {
  Histogram all_reused{};
  Histogram all_waiting{};
  for (unsigned page_class = 0; page_class < kClasses; ++page_class) {
    waiting[page_class][kBins - 1] += given_up_[page_class];
    add(all_reused, reused_[page_class]);
    add(all_waiting, waiting[page_class]);
  }
  for (unsigned frequency = 0; frequency < kFrequencies; ++frequency)
    learn_frequency(frequency, waiting, all_reused, all_waiting);
  for (Histogram& histogram : reused_) {
    for (double& count : histogram) count *= kFading;
  }
  for (double& count : given_up_) count *= kFading;
}

// From the general to the particular; each is the belief behind the next.
void ReuseTimes::learn_frequency(unsigned frequency, const std::vector<Histogram>& waiting,
                                 const Histogram& all_reused, const Histogram& all_waiting) {
  const double share = believed_reuse(frequency);
  Histogram belief;
  for (unsigned bin = 0; bin < kBins; ++bin) belief[bin] = share * even_[bin];
  const Histogram of_all = estimate(all_reused, all_waiting, {belief, kPagesBehindAll});
  for (unsigned bin = 0; bin < kBins; ++bin)
    belief[bin] = 0.5 * of_all[bin] + 0.5 * share * even_[bin];
  Histogram reused{};
  Histogram still_waiting{};
  const unsigned first = frequency * kIntervals;
  for (unsigned page_class = first; page_class < first + kIntervals; ++page_class) {
    add(reused, reused_[page_class]);
    add(still_waiting, waiting[page_class]);
  }
  const Histogram of_frequency = estimate(reused, still_waiting, {belief, kPagesBehindFrequency});
  for (unsigned page_class = first; page_class < first + kIntervals; ++page_class) {
    set_index(page_class, estimate(reused_[page_class], waiting[page_class],
                                   {of_frequency, kPagesBehindFrequency}));
  }
}

// The most hits per time from an age on is the steepest way from there to a later point of the
// curve of hits over time: that to the next corner of its upper hull, which grows from the far end.
void ReuseTimes::set_index(unsigned page_class, const Histogram& mass) {
  std::array<double, kBins + 1> hits;
  std::array<double, kBins + 1> time;
  hits[0] = time[0] = 0;
  for (unsigned bin = 0; bin < kBins; ++bin) {
    hits[bin + 1] = hits[bin] + mass[bin];
    const double survival =
        0.5 * (std::max(1e-9, 1 - hits[bin]) + std::max(1e-9, 1 - hits[bin + 1]));
    time[bin + 1] = time[bin] + (begin_[bin + 1] - begin_[bin]) * survival;
  }
  const auto steepness = [&](unsigned from, unsigned to) {
    return (hits[to] - hits[from]) / (time[to] - time[from]);
  };
  std::array<unsigned, kBins + 1> corners;
  unsigned count = 0;
  corners[count++] = kBins;
  for (unsigned age = kBins; age-- > 0;) {
    while (count > 1 && steepness(age, corners[count - 1]) <= steepness(age, corners[count - 2]))
      --count;
    index_[page_class][age] = static_cast<float>(steepness(age, corners[count - 1]));
    corners[count++] = age;
  }
}

}  // namespace cairn
