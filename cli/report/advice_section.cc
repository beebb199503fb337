// SPDX-License-Identifier: Apache-2.0
//
// What would make the run faster, as far as its own record tells: rules of thumb with the numbers
// that they rest on. `cairn advise` computes the same from each access.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/size_text.h"
#include "cli/node/json_fields.h"
#include "cli/report/html_text.h"
#include "cli/report/sections.h"
#include "cli/report/series.h"
#include "cli/report/verdict.h"

namespace cairn::cli {
namespace {

using Json = nlohmann::json;

// Less than this share is not worth a change.
constexpr double kLittle = 0.05;
constexpr double kMuch = 0.2;
constexpr double kManyBytes = 16 << 20;
constexpr double kBlockBytes = 64 << 10;

std::string size(double bytes) { return format_size(static_cast<uint64_t>(bytes)); }

// What the run did, for the rules below.
struct Facts {
  explicit Facts(const Json& run) : totals(totals_of(run)), series(run) {
    const Json& timeline = member(run, "timeline");
    drain = number_field(member(run, "report"), "drain_seconds");
    for (const Json& file : member(timeline, "files")) fsync += number_field(file, "fsync_seconds");
    fsyncs = unsigned_field(timeline, "fsyncs");
    has_log = text_field(timeline, "durability") == "node";
    for (const std::string& name : predictors_of(run)) {
      const double came = series.last("fetched_bytes." + name);
      fetched += came;
      vain += std::max(0.0, came - series.last("used_ahead_bytes." + name));
    }
  }

  RunTotals totals;
  Series series;
  double drain = 0;
  double fsync = 0;
  uint64_t fsyncs = 0;
  bool has_log = false;
  double fetched = 0;
  double vain = 0;
};

std::string on_fsyncs(const Facts& facts) {
  const double io = facts.totals.io;
  if (facts.fsync < kMuch * io || facts.fsyncs == 0) return "";
  const std::string took = fmt::format("{} fsyncs took {} of {} of I/O.", facts.fsyncs,
                                       format_duration(facts.fsync), format_duration(io));
  if (!facts.has_log)
    return took +
           " A durable tier on a local device answers them from its log (--tier "
           "DIRECTORY:SIZE:durable); else only fewer of them help.";
  const double stored = facts.series.last("fsyncs_stored");
  const double logged = facts.series.last("fsyncs_logged");
  if (stored <= logged * kLittle) return took + " The log answered them: fewer of them would help.";
  return took + fmt::format(
                    " The log could not take {:.0f} of them, which had to wait for the "
                    "store: `cairn status` says why, often because the tier is small.",
                    stored);
}

std::string on_misses(const Facts& facts) {
  const double read = facts.totals.read;
  const double missed = facts.totals.missed;
  if (missed < kManyBytes || missed < kMuch * read) return "";
  const std::string came = fmt::format("Programs waited for the store for {} of the {} they read.",
                                       size(missed), size(read));
  const double evicted = facts.series.last("evicted_blocks") * kBlockBytes;
  if (evicted >= kMuch * missed)
    return came + fmt::format(
                      " The tiers were full meanwhile, and {} had to leave: more room "
                      "(--ram, or a file tier with --tier) keeps it.",
                      size(evicted));
  return came +
         " Nothing had to leave the tiers, so those were first reads: more memory does not help. A "
         "declared order (`cairn declare`) has them fetched before they are wanted.";
}

std::string on_fetches(const Facts& facts) {
  if (facts.fetched < kManyBytes || facts.vain < kMuch * facts.fetched) return "";
  return fmt::format(
      "{} of the {} that were fetched ahead were not used. If that takes the store's time from "
      "others, prefetch less (`prefetch` in the configuration), or declare the order.",
      size(facts.vain), size(facts.fetched));
}

std::string on_writes(const Facts& facts) {
  const double written = facts.totals.written;
  const double through = facts.series.last("write_through_bytes");
  if (through < kManyBytes || through < kMuch * written) return "";
  return fmt::format(
      "{} of the {} that were written went straight to the store, because the tiers had no room or "
      "the mode says so: more room (--ram, --tier) takes bursts.",
      size(through), size(written));
}

std::string on_drain(const Facts& facts) {
  if (facts.drain < 1 || facts.drain < kMuch * facts.totals.wall) return "";
  return fmt::format(
      "After the program's end the store took {} more for what was dirty. The store is the bound "
      "there: a durable tier lets the job end before that (--grace SECONDS).",
      format_duration(facts.drain));
}

}  // namespace

std::string advice_section(const Json& run) {
  const Facts facts(run);
  const RunTotals& totals = facts.totals;
  if (totals.read + totals.written <= 0) return "";
  std::vector<std::string> advice;
  const double share = totals.wall > 0 ? totals.io / totals.processes / totals.wall : 0;
  if (share >= kLittle) {
    for (const auto& rule : {on_fsyncs, on_misses, on_fetches, on_writes})
      if (std::string said = rule(facts); !said.empty()) advice.push_back(std::move(said));
  }
  if (std::string said = on_drain(facts); !said.empty()) advice.push_back(std::move(said));
  if (advice.empty())
    advice.push_back(share < kLittle ? fmt::format("I/O was {} of the time: other settings have "
                                                   "little to give.",
                                                   percent(share, 1))
                                     : "Nothing in this record asks for other settings.");
  CAIRN_CHECK(!advice.empty());
  std::string html = "<ul id=\"advice-list\">";
  for (const std::string& each : advice) html += "<li>" + escaped(each) + "</li>";
  html +=
      "</ul><p class=\"how\"><code>cairn advise -- COMMAND</code> runs the command once, records "
      "each access, and says which sizes, policies and durability would give how much.</p>";
  return section("advice", "What would help", html);
}

}  // namespace cairn::cli
