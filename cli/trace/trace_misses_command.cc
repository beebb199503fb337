// SPDX-License-Identifier: Apache-2.0
//
// `cairn trace misses`: how much of a trace caches of every size would have missed, and so how
// large a tier has to be.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/size_text.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/trace/miss_estimate.h"
#include "cli/trace/trace_command.h"
#include "cli/trace/trace_input.h"

namespace cairn::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct MissWords {
  std::string trace;
  MissOptions options;
  double target = -1;  // percent
  bool json = false;
};

std::string size_of_pages(double pages, const MissOptions& options) {
  return format_size(static_cast<std::uint64_t>(pages * static_cast<double>(options.page_bytes)));
}

std::string percent_text(double ratio) { return fmt::format("{:.1f}", 100 * ratio); }

std::string curves_text(const MissEstimate& found, const MissOptions& options) {
  std::vector<std::string> head = {"cache", "lru"};
  for (const NamedCurve& other : found.others) head.push_back(other.name);
  std::vector<std::vector<std::string>> rows = {head};
  for (const std::uint64_t capacity : found.capacities) {
    std::vector<std::string> cells = {size_of_pages(static_cast<double>(capacity), options),
                                      percent_text(found.lru.at(capacity))};
    for (const NamedCurve& other : found.others)
      cells.push_back(percent_text(other.curve.at(capacity)));
    rows.push_back(std::move(cells));
  }
  return format_table(rows, std::string(head.size(), 'r'));
}

// What follows from the curve of LRU: a size to choose.
std::string sizes_text(const MissEstimate& found, const MissWords& words) {
  std::string text = fmt::format("90 % of the references are to {}\n",
                                 size_of_pages(found.hot_pages, words.options));
  if (const auto knee = found.lru.knee()) {
    text += fmt::format("the knee of lru is at {}, where it misses {} %\n",
                        size_of_pages(static_cast<double>(knee->capacity), words.options),
                        percent_text(knee->miss_ratio));
  } else {
    text += "no cache has a hit: no page is used twice\n";
  }
  if (words.target < 0) return text;
  const auto capacity = found.lru.smallest_capacity_for(words.target / 100);
  if (capacity) {
    text += fmt::format("lru misses at most {:g} % from {} on\n", words.target,
                        size_of_pages(static_cast<double>(*capacity), words.options));
  } else {
    text += fmt::format("no cache misses as little as {:g} %: {} % are first uses\n", words.target,
                        percent_text(found.lru.compulsory_ratio()));
  }
  return text;
}

std::string simulated_text(const MissEstimate& found) {
  if (found.simulated_references == found.references) return "";
  return fmt::format("all but lru know the first {} references only\n", found.simulated_references);
}

std::string misses_text(const MissEstimate& found, const MissWords& words) {
  // What a cache of fewer sampled pages holds is a matter of chance.
  constexpr double kSampledPagesMin = 100;
  const std::string sampled =
      found.sampled_share >= 1
          ? ""
          : fmt::format(", estimated from {:.2g} % of them (roughly for caches below {})",
                        100 * found.sampled_share,
                        size_of_pages(kSampledPagesMin / found.sampled_share, words.options));
  return fmt::format("{} references to {:.0f} pages of {}{}; misses in percent\n", found.references,
                     found.pages, format_size(words.options.page_bytes), sampled) +
         curves_text(found, words.options) + simulated_text(found) +
         fmt::format("{} % are first uses, which miss in every cache\n",
                     percent_text(found.lru.compulsory_ratio())) +
         sizes_text(found, words);
}

OrderedJson curve_json(const MissRatioCurve& curve, const MissEstimate& found,
                       const MissOptions& options) {
  OrderedJson points = OrderedJson::array();
  for (const std::uint64_t capacity : found.capacities)
    points.push_back(
        {{"bytes", capacity * options.page_bytes}, {"miss_ratio", curve.at(capacity)}});
  return points;
}

std::uint64_t bytes_of_pages(double pages, const MissOptions& options) {
  return static_cast<std::uint64_t>(pages * static_cast<double>(options.page_bytes));
}

OrderedJson misses_json(const MissEstimate& found, const MissWords& words) {
  const MissOptions& options = words.options;
  OrderedJson curves = {{"lru", curve_json(found.lru, found, options)}};
  for (const NamedCurve& other : found.others)
    curves[other.name] = curve_json(other.curve, found, options);
  OrderedJson object = {{"references", found.references},
                        {"page_bytes", options.page_bytes},
                        {"bytes", bytes_of_pages(found.pages, options)},
                        {"hot_bytes", bytes_of_pages(found.hot_pages, options)},
                        {"simulated_references", found.simulated_references},
                        {"sampled_share", found.sampled_share},
                        {"first_use_ratio", found.lru.compulsory_ratio()},
                        {"curves", std::move(curves)}};
  if (const auto knee = found.lru.knee())
    object["knee"] = {{"bytes", knee->capacity * options.page_bytes},
                      {"miss_ratio", knee->miss_ratio}};
  if (words.target < 0) return object;
  const auto capacity = found.lru.smallest_capacity_for(words.target / 100);
  object["target"] = {{"miss_ratio", words.target / 100},
                      {"bytes", capacity ? OrderedJson(*capacity * options.page_bytes) : nullptr}};
  return object;
}

void add_miss_options(CLI::App& app, MissWords& words, std::string& page) {
  app.add_option("path", words.trace, "The trace")->type_name("TRACE")->required();
  add_list(app, "--expert", words.options.experts,
           "An expert of replacement beside lru (default: ws-plus)", "NAME");
  add_text(app, "--page", page, "Bytes of one reference (default: 512K)", "SIZE");
  app.add_option("--target", words.target, "Say from which size on lru misses at most PERCENT")
      ->type_name("PERCENT")
      ->check(number_between(0.0, 100.0));
  app.add_flag("--json", words.json, "One JSON object instead of the text");
}

void check_comparison(const std::vector<std::string>& experts) {
  check_experts(experts);
  for (auto name = experts.begin(); name != experts.end(); ++name) {
    if (*name == "lru") throw Failure("--expert lru: it is always compared", "name others");
    if (*name == "farthest-in-future")
      throw Failure(
          "--expert farthest-in-future: it needs the future, and is \"best possible\" then",
          "name others");
    if (std::find(experts.begin(), name, *name) != name)
      throw Failure(fmt::format("--expert {} is named twice", *name), "name it once");
  }
}

void check_sizes(const MissWords& words) {
  constexpr std::uint64_t kPageBytesMax = std::uint64_t{1} << 30;
  if (words.options.page_bytes > kPageBytesMax)
    throw Failure("--page: more than 1G", "give what a tier moves at a time, such as 64K or 4M");
  if (std::isnan(words.target)) throw Failure("--target: not a number", "give 0 to 100");
}

}  // namespace

int trace_misses(const Arguments& arguments) {
  CLI::App app("Says what caches of every size would have missed of a trace.",
               "cairn trace misses");
  MissWords words;
  std::string page;
  add_miss_options(app, words, page);
  app.footer("Example:\n  cairn trace misses --target 20 job.trace");
  parse(app, arguments);
  if (!page.empty()) words.options.page_bytes = size_argument("--page", page);
  if (words.options.experts.empty()) words.options.experts = {"ws-plus"};
  check_comparison(words.options.experts);
  check_sizes(words);
  const auto trace = open_trace_or_fail(words.trace);
  const auto found = estimate_misses(*trace, words.options);
  if (!found) throw Failure(found.status().message(), "record it again, or cut it off before that");
  if (found.value().references == 0)
    throw Failure(fmt::format("{}: there are no reads and no writes in it", printable(words.trace)),
                  "`cairn trace info` shows the events of a trace");
  print(words.json ? misses_json(found.value(), words).dump() + "\n"
                   : misses_text(found.value(), words));
  say_warning(*trace);
  return kExitOk;
}

}  // namespace cairn::cli
