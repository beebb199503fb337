// SPDX-License-Identifier: Apache-2.0
#include "cli/advice/advice_sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/size_text.h"
#include "cli/advice/machine_costs.h"

namespace cairn::cli {
namespace {

using advice::Improvement;
using advice::Limit;
using advice::Refusal;

std::string size_of(double bytes) {
  return format_size(static_cast<std::uint64_t>(std::max(0.0, bytes)));
}

std::string seconds_and_interval(const advice::Forecast& forecast) {
  return fmt::format("{} ({} to {})", format_duration(forecast.seconds()),
                     format_duration(forecast.interval.low),
                     format_duration(forecast.interval.high));
}

std::string refusal_reason(const AdviceTold& told) {
  if (told.advice.advised().plan.mode == "bypass")
    return "in mode bypass each call goes to the store";
  const double first = 100 * told.work.reuse.reads.compulsory_ratio();
  switch (told.advice.refusal) {
    case Refusal::kFastStore:
      return fmt::format("the store ({}) is about as fast as the tiers would be",
                         told.question.machine.store.source);
    case Refusal::kReadOnce:
      return fmt::format(
          "{:.0f} % of the reads of blocks are the first of their block, and in no order that "
          "could "
          "be fetched ahead",
          first);
    case Refusal::kKernelCache:
      return fmt::format("the kernel's page cache ({}) keeps these files as well",
                         size_of(told.question.machine.page_cache_bytes));
    case Refusal::kLittleIo:
      return "I/O takes less than 1 % of the time of the program";
    case Refusal::kNone:
    case Refusal::kNoGain:
      break;
  }
  return "the store has to serve as much with Cairn as without";
}

std::string limit_sentence(const AdviceTold& told) {
  switch (told.advice.limit) {
    case Limit::kStoreReads:
      return "What is left is mostly reads of the store of data that no tier has kept.";
    case Limit::kFirstUses:
      return "The remaining misses are mostly first reads of data, which every cache has.";
    case Limit::kStoreWrites:
      return "What is left is mostly writes that the store does not take as fast as they come.";
    case Limit::kTier:
      return "What is left is mostly the device of the file tier.";
    case Limit::kProcessor:
      return "What is left is mostly the processor: calls, and copies of bytes.";
    case Limit::kFsyncs:
      return "What is left is mostly fsyncs.";
  }
  CAIRN_CHECK(false);
  return "";
}

std::string improvement_sentence(const AdviceTold& told, const advice::Improved& improved) {
  const std::string saved = format_duration(improved.seconds);
  switch (improved.what) {
    case Improvement::kLargerRequests:
      return fmt::format("Requests of 1 MiB in order would save {}.", saved);
    case Improvement::kNoFsyncs:
      return fmt::format("No fsyncs would save {}.", saved);
    case Improvement::kDurableTier:
      return fmt::format("A durable tier ({}) for fsyncs would save {}: --tier DIR:SIZE:durable.",
                         told.question.wishes.spare_tier.speed.source, saved);
    case Improvement::kMoreMemory:
      return fmt::format("Memory of {} would save {} more.", size_of(improved.bytes), saved);
    case Improvement::kAnotherTier:
      return fmt::format("Another tier, of {} ({}), would save {}.", size_of(improved.bytes),
                         told.question.wishes.spare_tier.speed.source, saved);
  }
  CAIRN_CHECK(false);
  return "";
}

std::string sizes_sentence(const AdviceTold& told) {
  const advice::Sizes& sizes = told.advice.sizes;
  std::string text = fmt::format("The working set is {}; 90 % of the uses are of {}",
                                 size_of(sizes.working_set_bytes), size_of(sizes.hot_bytes));
  text += sizes.knee_bytes ? fmt::format("; the knee is at {}.", size_of(*sizes.knee_bytes))
          : told.work.accesses.reads.repeats > 0
              ? std::string("; a block that is read again is read again at once.")
              : std::string("; no block is used twice.");
  return text;
}

std::string order_sentence(const AdviceTold& told) {
  const advice::UseCounts& reads = told.work.accesses.reads;
  return fmt::format(
      "{:.0f} % of the reads are in order and can be fetched ahead; the programs compute for {}.",
      100 * reads.foreseen_share(), format_duration(told.advice.compute_seconds));
}

std::string target_sentence(const AdviceTold& told) {
  const double percent = 100 * told.question.wishes.target_share.value_or(0);
  if (!told.advice.sizes.target_bytes)
    return fmt::format("No size of memory alone leaves {:g} % of the I/O time.", percent);
  return fmt::format("Memory of {} alone leaves {:g} % of the I/O time.",
                     size_of(*told.advice.sizes.target_bytes), percent);
}

// Where the configuration of --what-if gains nothing and another one does: which. Else empty.
std::string better_than_given(const AdviceTold& told) {
  constexpr double kGainMin = 0.05;
  const advice::Advice& advice = told.advice;
  if (!told.question.wishes.what_if || told.question.machine.store.is_memory) return "";
  const auto best = std::ranges::max_element(
      advice.candidates, {}, [](const auto& candidate) { return candidate.gain.share; });
  CAIRN_CHECK(best != advice.candidates.end());
  if (best->gain.share < kGainMin) return "";
  return fmt::format("\"{}\" would: I/O takes about {} instead of {}, {:.0f} % less.",
                     best->plan.name, seconds_and_interval(best->forecast),
                     seconds_and_interval(advice.without), 100 * best->gain.share);
}

// With which tiers Cairn would help, although it does not as it is configured.
std::string way_to_help(const AdviceTold& told) {
  const advice::Advice& advice = told.advice;
  const advice::Improved* const way = advice.way_to_help();
  if (way == nullptr) return "";
  const double without = advice.without.seconds();
  CAIRN_CHECK(without > way->seconds);
  const std::string& device = told.question.wishes.spare_tier.speed.source;
  const std::string tiers =
      way->what == Improvement::kDurableTier ? fmt::format("a durable tier ({}) for fsyncs", device)
      : way->what == Improvement::kMoreMemory
          ? fmt::format("memory of {}", size_of(way->bytes))
          : fmt::format("another tier, of {} ({}),", size_of(way->bytes), device);
  return fmt::format("With {} it would help: I/O takes about {} instead of {}, {:.0f} % less.",
                     tiers, format_duration(without - way->seconds), format_duration(without),
                     100 * way->seconds / without);
}

TierLeftOut left_out(const AdviceTold& told, const advice::FileTierPlan& tier) {
  const std::string name =
      fmt::format("{} tier \"{}\"", tier.is_durable ? "durable" : "file", tier.name);
  if (!tier.is_durable)
    return {&tier, "memory-as-fast",
            fmt::format("The {} is left out: memory alone is about as fast.", name)};
  if (told.work.accesses.writes.requests == 0)
    return {&tier, "nothing-written",
            fmt::format("The {} is left out: nothing was written that its log would keep, and for "
                        "reads memory alone is about as fast.",
                        name)};
  return {&tier, "memory-as-fast",
          fmt::format("The {} is left out: by this record memory alone is about as fast. What is "
                      "fsynced waits for the store then (--fsyncs N says how often).",
                      name)};
}

// Where the workload is from.
std::string node_sentence(const LookedAtNode& node) {
  const double hits = node.read_bytes - std::min(node.read_bytes, node.miss_bytes);
  std::string text = fmt::format(
      "This is from {} events of the programs of node {}, which were recorded for {} just now{}; a "
      "node keeps no record of what came before. ",
      node.accesses, node.name, format_duration(node.seconds),
      node.lost == 0 ? "" : fmt::format(" ({} more came too fast)", node.lost));
  text += fmt::format("By its counters they have read {} since it began, {} ago, ",
                      size_of(node.read_bytes), format_duration(node.uptime_seconds));
  if (node.read_bytes > 0)
    text += fmt::format("{:.0f} % of that from its tiers, ", 100 * hits / node.read_bytes);
  return text + fmt::format("and written {}.", size_of(node.write_bytes));
}

}  // namespace

std::vector<TierLeftOut> tiers_left_out(const AdviceTold& told) {
  std::vector<TierLeftOut> list;
  if (told.advice.verdict == advice::Verdict::kDoNotUse || told.question.wishes.what_if)
    return list;
  const std::vector<advice::FileTierPlan>& used = told.advice.advised().plan.tiers;
  for (const advice::FileTierPlan& tier : told.question.wishes.tiers) {
    const bool is_used = std::ranges::any_of(
        used, [&](const advice::FileTierPlan& other) { return other.directory == tier.directory; });
    if (!is_used) list.push_back(left_out(told, tier));
  }
  return list;
}

std::string verdict_sentence(const AdviceTold& told) {
  const advice::Advice& advice = told.advice;
  if (advice.verdict == advice::Verdict::kDoNotUse) {
    const std::string better = better_than_given(told);
    if (!better.empty())
      return fmt::format("This configuration does not help: {}. {}", refusal_reason(told), better);
    const std::string way = way_to_help(told);
    if (!way.empty())
      return fmt::format("Do not use Cairn for this as it is configured: {}. {}",
                         refusal_reason(told), way);
    return fmt::format("Do not use Cairn for this: {}.", refusal_reason(told));
  }
  const advice::Candidate& best = advice.advised();
  return fmt::format("Cairn {} this: I/O takes about {} instead of {}, {:.0f} % less.",
                     advice.verdict == advice::Verdict::kHelps ? "helps with" : "may help with",
                     seconds_and_interval(best.forecast), seconds_and_interval(advice.without),
                     100 * best.gain.share);
}

std::vector<std::string> reason_sentences(const AdviceTold& told) {
  const advice::Advice& advice = told.advice;
  std::vector<std::string> lines;
  lines.push_back(sizes_sentence(told));
  if (told.work.accesses.reads.uses() > 0) lines.push_back(order_sentence(told));
  if (told.question.wishes.target_share) lines.push_back(target_sentence(told));
  for (TierLeftOut& each : tiers_left_out(told)) lines.push_back(std::move(each.sentence));
  lines.push_back(limit_sentence(told));
  for (const advice::Improved& improved : advice.improvements)
    lines.push_back(improvement_sentence(told, improved));
  if (told.work.accesses.writes.request_bytes > 0)
    lines.push_back(fmt::format("After the last access the store needs {} more until it has all.",
                                format_duration(advice.outlook().drain_seconds)));
  if (told.work.accesses.fsyncs.value_or(0) > 0)
    lines.push_back(fmt::format("The fsyncs take {} at durability level store, {} at level node.",
                                format_duration(advice.store_fsync_seconds),
                                format_duration(advice.node_fsync_seconds)));
  return lines;
}

std::vector<std::string> assumption_sentences(const AdviceTold& told) {
  const advice::Machine& machine = told.question.machine;
  std::vector<std::string> lines;
  if (told.node) lines.push_back(node_sentence(*told.node));
  lines.push_back(fmt::format("The store's figures are: {}{}.", machine.store.source,
                              machine.store.source.starts_with("class")
                                  ? " (`cairn profile DIR` measures it, which halves the intervals)"
                                  : ""));
  for (std::string& line : trained_sentences(told.trained)) lines.push_back(std::move(line));
  if (told.question.assumes_no_page_cache) {
    lines.push_back(
        "Without Cairn the kernel is taken to keep nothing of the store's files, as it is behind a "
        "network; if it does, say --what-if page-cache=SIZE.");
  } else {
    lines.push_back(
        fmt::format("Without Cairn the kernel is taken to keep {} of the store's files "
                    "(--what-if page-cache=SIZE for another size).",
                    size_of(machine.page_cache_bytes)));
  }
  if (told.question.timing_spread > kSpreadMax)
    lines.push_back(fmt::format(
        "Other work has disturbed the timings of this machine's calls and memory, which differ by "
        "{:.0f} %; the best ones are taken.",
        100 * told.question.timing_spread));
  const double own = machine.store.own_fsync_seconds();
  if (told.work.accesses.fsyncs.value_or(0) > 0 && own > machine.store.fsync_seconds())
    lines.push_back(fmt::format(
        "Fsyncs are taken to last as long as they did in this record, {} each ({} by the store's "
        "figures), as if it was made on this store.",
        format_duration(own), format_duration(machine.store.fsync_seconds())));
  if (!told.work.accesses.fsyncs)
    lines.emplace_back(
        "This trace does not say how often the program calls fsync (--fsyncs N does).");
  if (told.work.reuse.is_sampled)
    lines.emplace_back("The miss ratios are estimated from a sample of the blocks.");
  return lines;
}

const char* name_of(advice::Verdict verdict) {
  constexpr const char* kNames[] = {"helps", "may-help", "do-not-use"};
  return kNames[static_cast<unsigned>(verdict)];
}

const char* name_of(Refusal refusal) {
  constexpr const char* kNames[] = {"none",         "fast-store", "read-once",
                                    "kernel-cache", "little-io",  "no-gain"};
  return kNames[static_cast<unsigned>(refusal)];
}

const char* name_of(Limit limit) {
  constexpr const char* kNames[] = {"store-reads", "first-uses", "store-writes",
                                    "tier",        "processor",  "fsyncs"};
  return kNames[static_cast<unsigned>(limit)];
}

const char* name_of(Improvement improvement) {
  constexpr const char* kNames[] = {"larger-requests", "no-fsyncs", "durable-tier", "more-memory",
                                    "another-tier"};
  return kNames[static_cast<unsigned>(improvement)];
}

}  // namespace cairn::cli
