// SPDX-License-Identifier: Apache-2.0
#include "policy/heat/heat_score.h"

#include <algorithm>
#include <cmath>

namespace cairn {
namespace {

// Beyond this neither a weight nor a time means anything, and arithmetic could leave the numbers.
constexpr double kMagnitudeMax = 1e19;

// Half-widths are floats: rounded so that a run never looks narrower than it is.
float rounded_up(double width) { return static_cast<float>(std::max(width, 0.0) * (1 + 1e-6)); }

HeatScore::Run joined(const HeatScore::Run& one, const HeatScore::Run& other) {
  const double weight = one.weight + other.weight;
  // Not as a sum of products, which would lose digits of times that are large and close.
  const double mean = one.mean + (other.mean - one.mean) * (other.weight / weight);
  const double first = std::min(one.mean - one.before, other.mean - other.before);
  const double last = std::max(one.mean + one.after, other.mean + other.after);
  return {mean, weight, rounded_up(mean - first), rounded_up(last - mean)};
}

// The least and the most that a run's terms can sum to, as seen at the time `now`.
double least_of(const HeatScore::Run& run, double rate, double now) {
  return run.weight * std::exp(-rate * (now - run.mean));
}

double most_of(const HeatScore::Run& run, double rate, double now) {
  const double width = static_cast<double>(run.before) + run.after;
  if (width == 0) return least_of(run, rate, now);
  const double middle = -rate * (now - run.mean);
  const double at_first = std::exp(middle - rate * run.before);
  const double at_last = std::exp(middle + rate * run.after);
  return run.weight * (run.before * at_last + run.after * at_first) / width;
}

// As many as can be counted.
std::uint32_t sum_of(std::uint32_t one, std::uint32_t other) {
  return one + std::min(other, std::numeric_limits<std::uint32_t>::max() - one);
}

bool is_sound(const HeatScore::Run& run) {
  const auto is_width = [](float width) { return width >= 0 && width <= kMagnitudeMax; };
  return std::isfinite(run.mean) && std::abs(run.mean) <= kMagnitudeMax &&
         std::isfinite(run.weight) && run.weight > 0 && run.weight <= kMagnitudeMax &&
         is_width(run.before) && is_width(run.after);
}

}  // namespace

HeatDecay HeatDecay::of(double base) { return {std::log(std::max(base, 2.0))}; }

void HeatScore::add(double time, const HeatDecay& decay) {
  references_ = sum_of(references_, 1);
  if (count_ > 0) {
    Run& newest = runs_[count_ - 1];
    if (newest.mean == time && newest.before == 0 && newest.after == 0) {
      newest.weight += 1;
      return;
    }
  }
  std::array<Run, kRunsMax + 1> all;
  std::copy_n(runs_.begin(), count_, all.begin());
  all[count_] = {time, 1, 0, 0};
  assign({all.data(), count_ + 1U}, decay);
}

void HeatScore::merge(const HeatScore& other, const HeatDecay& decay) {
  if (other.is_cold()) return;
  references_ = sum_of(references_, other.references_);
  std::array<Run, 2 * kRunsMax> all;
  const auto end = std::copy_n(runs_.begin(), count_, all.begin());
  std::copy_n(other.runs_.begin(), other.count_, end);
  assign({all.data(), count_ + other.count_}, decay);
}

void HeatScore::assign(std::span<Run> runs, const HeatDecay& decay) {
  std::ranges::sort(runs, {}, &Run::mean);
  const double fall = rate(decay);
  std::size_t count = runs.size();
  while (count > kRunsMax) {
    // All terms fade by the same factor, so what costs least costs least at any time.
    const double now = runs[count - 1].mean;
    std::size_t cheapest = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t at = 0; at + 1 < count; ++at) {
      const Run both = joined(runs[at], runs[at + 1]);
      const double cost = most_of(both, fall, now) - least_of(both, fall, now);
      if (cost < least) {
        least = cost;
        cheapest = at;
      }
    }
    runs[cheapest] = joined(runs[cheapest], runs[cheapest + 1]);
    std::copy(runs.begin() + static_cast<std::ptrdiff_t>(cheapest) + 2,
              runs.begin() + static_cast<std::ptrdiff_t>(count),
              runs.begin() + static_cast<std::ptrdiff_t>(cheapest) + 1);
    --count;
  }
  std::copy_n(runs.begin(), count, runs_.begin());
  count_ = static_cast<std::uint32_t>(count);
}

void HeatScore::weaken(double factor) {
  std::uint32_t kept = 0;
  for (std::uint32_t at = 0; at < count_; ++at) {
    Run run = runs_[at];
    run.weight *= factor;
    if (run.weight >= kWeightMin) runs_[kept++] = run;
  }
  count_ = kept;
  if (is_cold()) references_ = 0;
}

void HeatScore::shift(double steps) {
  for (std::uint32_t at = 0; at < count_; ++at) runs_[at].mean += steps;
}

FadingScore HeatScore::fading(const HeatDecay& decay) const {
  if (is_cold()) return {};
  const double fall = rate(decay);
  // Seen at the newest run, whose own term is then its weight: the sum cannot vanish.
  const double newest = runs_[count_ - 1].mean;
  double sum = 0;
  for (const Run& run : runs()) sum += least_of(run, fall, newest);
  return {std::log(sum) + fall * newest, fall};
}

double HeatScore::at(double time, const HeatDecay& decay) const {
  return std::exp(logarithm_at(time, decay));
}

double HeatScore::error_max(const HeatDecay& decay) const {
  if (is_cold()) return 0;
  const double fall = rate(decay);
  const double newest = runs_[count_ - 1].mean;
  double least = 0;
  double most = 0;
  for (const Run& run : runs()) {
    least += least_of(run, fall, newest);
    most += most_of(run, fall, newest);
  }
  return std::max(0.0, std::log(most / least));
}

bool HeatScore::restore(std::span<const Run> runs, std::uint32_t references) {
  count_ = 0;
  references_ = 0;
  if (runs.size() > kRunsMax || runs.empty() != (references == 0) ||
      !std::ranges::all_of(runs, is_sound) || !std::ranges::is_sorted(runs, {}, &Run::mean)) {
    return false;
  }
  std::ranges::copy(runs, runs_.begin());
  count_ = static_cast<std::uint32_t>(runs.size());
  references_ = references;
  return true;
}

}  // namespace cairn
