// SPDX-License-Identifier: Apache-2.0
// Estimates when pages are used again: for each class of pages the distribution F of the time to
// the next reference, and from it the worth of keeping a page of age a,
//
//     index(a) = max over T of (F(a + T) - F(a)) / integral from a to a + T of (1 - F),
//
// the most hits that a place in the cache can give per unit of time (the Gittins index: Gittins,
// "Bandit processes and dynamic allocation indices", J. R. Stat. Soc. B 41(2), 1979).
//
// A class is how often a page was seen (8 classes by powers of two) and how far apart its last two
// references were, against the cache's capacity (5 classes). Times are counted in references, in
// bins of a quarter of an octave. An interval that has not ended does not count as a page that
// never comes back: it is censored data (the product-limit estimate: Kaplan, Meier, J. Am. Stat.
// Assoc. 53, 1958). Classes of few pages lean on those of the same frequency, and these on all
// pages.
//
// Thread safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace cairn {

class ReuseTimes {
 public:
  static constexpr unsigned kBins = 96;
  static constexpr unsigned kFrequencies = 8;
  static constexpr unsigned kIntervals = 5;
  static constexpr unsigned kClasses = kFrequencies * kIntervals;
  using Histogram = std::array<double, kBins>;

  // `capacity`: of the cache, in pages. Requires: > 0.
  explicit ReuseTimes(std::uint32_t capacity);

  // The class of a page that has been seen so often, the last two times so far apart.
  unsigned class_of(std::uint32_t times_seen, std::uint64_t interval) const;
  // A page of the class was referenced again after so long.
  void note_reuse(unsigned page_class, std::uint64_t age);
  // It is not waited for any more.
  void note_given_up(unsigned page_class) { given_up_[page_class] += 1; }

  // Learns from the noted times, and from the pages whose return is awaited: `waiting` counts them
  // by class and age. Older notes fade a little.
  void learn(std::vector<Histogram> waiting);

  // The higher, the better it is to keep it.
  float index(unsigned page_class, std::uint64_t age) const {
    return index_[page_class][bin_of(age)];
  }

  // The bin that an age falls in.
  static unsigned bin_of(std::uint64_t age);

 private:
  // Reuse by age that is believed, and how many pages that belief is worth.
  struct Prior {
    const Histogram& mass;
    double pages;
  };
  Histogram estimate(const Histogram& reused, const Histogram& waiting, const Prior& prior) const;
  void learn_frequency(unsigned frequency, const std::vector<Histogram>& waiting,
                       const Histogram& all_reused, const Histogram& all_waiting);
  void set_index(unsigned page_class, const Histogram& mass);

  const std::uint64_t capacity_;
  std::array<double, kBins + 1> begin_;  // of each bin
  Histogram even_{};                     // reuse at any age up to 16 times the capacity
  std::vector<Histogram> reused_;
  std::array<double, kClasses> given_up_{};
  std::vector<std::array<float, kBins>> index_;
};

}  // namespace cairn
