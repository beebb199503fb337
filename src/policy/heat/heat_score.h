// SPDX-License-Identifier: Apache-2.0
// A measure of how hot something is: the sum over its accesses t_1 .. t_k of (1/p)^((t - t_i) / n),
// where n counts its references and p >= 2 says how fast old accesses fade (Kougkas, Devarajan,
// Sun: JCST 35(1), 2020, equation 1).
//
// Each term has a weight, 1 at first; the caller may make older terms weigh less. n counts a
// reference as 1 whatever it weighs, so that a score is halved when all its weights are.
//
// Exactness. Between two accesses n stays as it is, so the whole sum fades as one:
// s(t) = s(t0) * (1/p)^((t - t0) / n). An access changes n, and with it every term by a factor of
// its own, so that no one number can be carried on: from n to n + 1 it would be wrong by up to
// (n/s)^(1/(n+1)), each time. Therefore accesses are kept as at most kRunsMax runs, each with its
// weight, its mean time and the times of its first and last access. Up to kRunsMax different times
// the score is the exact sum.
//
// The error. A run's terms sum to at least what they would if all were at their mean (Jensen), and
// to at most what they would if all were at the two ends (the chord). The score is the lower of
// the two, and error_max() their distance: s <= exact sum <= s * exp(error_max()), always. Which
// runs are joined is chosen so that this grows least. Over eight patterns of a thousand accesses
// (heat_score_test.cc) it was 6.0 % at most and the real distance 2.1 %; with a step or less from
// access to access 0.3 and 0.2 %.
//
// Times are in steps, whose length the paper leaves open: the caller chooses it. Logarithms are
// natural, because scores may be smaller than any number.
//
// Thread safety: none; values. It needs nothing of other modules. An access takes about 24
// exponentials (0.2 us) once all runs are in use, and none when it is at the time of the last one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>

namespace cairn {

struct HeatDecay {
  double log_base = std::numbers::ln2;  // of p

  static HeatDecay of(double base);
};

// A score until its next access: a line of logarithms over time. Lines of one rate never cross, so
// their order by level is that of the scores at any time.
struct FadingScore {
  double level = -std::numeric_limits<double>::infinity();  // the logarithm, carried back to time 0
  double rate = 0;                                          // what it loses in a step: log p / n

  double logarithm_at(double time) const { return level - rate * time; }
};

class HeatScore {
 public:
  static constexpr std::size_t kRunsMax = 6;

  // Accesses that are remembered together.
  struct Run {
    double mean = 0;  // of their times, by weight
    double weight = 0;
    float before = 0;  // from the first of them to the mean, rounded up
    float after = 0;   // from the mean to the last of them, rounded up
  };

  // An access. Times need not come in order: processes report when they like.
  void add(double time, const HeatDecay& decay = {});

  // All accesses of another one too, as when two neighbours become one segment.
  void merge(const HeatScore& other, const HeatDecay& decay = {});

  // Each access weighs `factor` times as much as before. Runs that end below kWeightMin are
  // forgotten, and count in no sum any more, so that what is never used again ends cold.
  static constexpr double kWeightMin = 1.0 / (1 << 20);
  void weaken(double factor);

  // All accesses were so much later.
  void shift(double steps);

  bool is_cold() const { return count_ == 0; }
  // n of the equation; 0 when it is cold.
  std::uint32_t references() const { return references_; }
  // -infinity when it is cold.
  double logarithm_at(double time, const HeatDecay& decay = {}) const {
    return fading(decay).logarithm_at(time);
  }
  double at(double time, const HeatDecay& decay = {}) const;
  FadingScore fading(const HeatDecay& decay = {}) const;
  // exact sum <= score * exp(error_max()), until the next access.
  double error_max(const HeatDecay& decay = {}) const;

  // Ascending by mean.
  std::span<const Run> runs() const { return {runs_.data(), count_}; }
  // Takes stored runs. Returns: whether they can be a score; it is cold if not.
  bool restore(std::span<const Run> runs, std::uint32_t references);

 private:
  // Takes over runs in any order, joined until they are few enough.
  void assign(std::span<Run> runs, const HeatDecay& decay);
  double rate(const HeatDecay& decay) const { return decay.log_base / references_; }

  std::array<Run, kRunsMax> runs_{};
  std::uint32_t count_ = 0;
  std::uint32_t references_ = 0;
};

}  // namespace cairn
