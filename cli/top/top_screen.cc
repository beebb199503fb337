// SPDX-License-Identifier: Apache-2.0
#include "cli/top/top_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/size_text.h"
#include "cli/node/json_fields.h"
#include "cli/top/screen_text.h"

namespace cairn::cli {
namespace {

using nlohmann::json;
using Lines = std::vector<ScreenLine>;

constexpr std::array<const char*, kRates> kRateNames = {"read", "write", "flush", "fetch"};

std::string rate_of(double bytes_per_second) {
  return format_size(static_cast<std::uint64_t>(std::max(0.0, bytes_per_second))) + "/s";
}

std::string span_of(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", std::max(0.0, seconds));
  if (seconds < 6000) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.0f} h", std::min(seconds / 3600, 1e6));
}

void add_tiers(Lines& lines, const json& status, const ScreenShape& shape) {
  for (const json& tier : member(status, "tiers")) {
    const std::uint64_t used = unsigned_field(tier, "used_bytes");
    const std::uint64_t dirty = unsigned_field(tier, "dirty_bytes");
    const std::uint64_t capacity = unsigned_field(tier, "capacity_bytes");
    const std::string name = padded(text_field(tier, "name"), 8, shape.is_ascii);
    const std::string numbers = fmt::format("{} of {}, dirty {}", format_size(used),
                                            format_size(capacity), format_size(dirty));
    const unsigned cells = std::clamp(shape.columns, 52U, 100U) - 50;
    const std::string state = text_field(tier, "state");
    const bool is_well = state.empty() || state == "in service";
    lines.push_back({fmt::format("{} [{}] {}{}", name, bar(dirty, used, capacity, cells), numbers,
                                 is_well ? "" : " " + state),
                     is_well ? ScreenStyle::kPlain : ScreenStyle::kTrouble});
  }
}

void add_rates(Lines& lines, const RateHistory& rates, const ScreenShape& shape) {
  const unsigned cells = shape.columns > 24 ? shape.columns - 24 : 0;
  for (unsigned number = 0; number < kRates; ++number) {
    const auto rate = static_cast<Rate>(number);
    lines.push_back({fmt::format("{:<8} {:>13}  {}", kRateNames[number], rate_of(rates.last(rate)),
                                 sparkline(rates.of(rate), cells, shape.is_ascii))});
  }
}

void add_queue(Lines& lines, const json& status, const RateHistory& rates) {
  const std::uint64_t dirty = unsigned_field(member(status, "backing"), "dirty_bytes");
  const double rate = rates.last(Rate::kFlush);
  std::string text = fmt::format("flusher  {} files, {} to store",
                                 unsigned_field(status, "unstored_total"), format_size(dirty));
  if (dirty != 0 && rate > 0)
    text += fmt::format(", about {}", span_of(static_cast<double>(dirty) / rate));
  const std::size_t errors = member(status, "errors").size();
  if (errors != 0) text += fmt::format(", {} FAIL", errors);
  lines.push_back({text, errors == 0 ? ScreenStyle::kPlain : ScreenStyle::kTrouble});
  std::uint64_t fetched = 0;
  std::uint64_t used = 0;
  std::uint64_t vain = 0;
  for (const json& line : member(status, "fetches")) {
    fetched += unsigned_field(line, "fetched_bytes");
    used += unsigned_field(line, "used_bytes");
    vain += unsigned_field(line, "evicted_unused_bytes");
  }
  lines.push_back({fmt::format("prefetch {} fetched, {} used, {} in vain", format_size(fetched),
                               format_size(used), format_size(vain))});
}

std::uint64_t used_by(const json& run) {
  std::uint64_t used = 0;
  for (const json& tier : member(run, "tiers")) used += unsigned_field(tier, "used_bytes");
  return used;
}

std::string command_of(const json& run) {
  std::string text;
  for (const json& word : member(run, "command_line"))
    if (word.is_string()) text += (text.empty() ? "" : " ") + word.get<std::string>();
  return text;
}

// Elements of one list, which lie one behind the other: those that are alike stay in its order.
// (std::stable_sort() would do, but for its use of what C++17 calls deprecated.)
template <typename Before>
void sort_elements(std::vector<const json*>& elements, Before&& before) {
  std::sort(elements.begin(), elements.end(), [&before](const json* left, const json* right) {
    if (before(*left, *right)) return true;
    return !before(*right, *left) && left < right;
  });
}

// The most and the oldest first, commands by the alphabet.
bool is_before(const json& left, const json& right, RunOrder order) {
  if (order == RunOrder::kStored)
    return unsigned_field(left, "stored_bytes") > unsigned_field(right, "stored_bytes");
  if (order == RunOrder::kAge)
    return number_field(left, "seconds") > number_field(right, "seconds");
  if (order == RunOrder::kCommand) return command_of(left) < command_of(right);
  return used_by(left) > used_by(right);
}

void add_runs(Lines& lines, const json& status, const ScreenView& view, const ScreenShape& shape) {
  static constexpr std::array<const char*, 4> kOrders = {"used", "stored", "age", "command"};
  std::vector<const json*> runs;
  for (const json& run : member(status, "runs")) runs.push_back(&run);
  sort_elements(runs, [&view](const json& left, const json& right) {
    return view.runs_are_reversed ? is_before(right, left, view.run_order)
                                  : is_before(left, right, view.run_order);
  });
  lines.push_back(
      {fmt::format("RUNS {:<5} {:>9} {:>9} {:>8}  COMMAND, by {}{}", runs.size(), "USED", "STORED",
                   "AGE", kOrders[static_cast<unsigned>(view.run_order)],
                   view.runs_are_reversed ? ", reversed" : ""),
       ScreenStyle::kHead});
  const std::size_t left = shape.rows > lines.size() + 1 ? shape.rows - lines.size() - 1 : 0;
  const std::size_t shown = std::min((left + 1) / 2, runs.size());
  for (std::size_t index = 0; index < shown; ++index) {
    const json& run = *runs[index];
    lines.push_back(
        {fmt::format("{} {:>9} {:>9} {:>8}  {}", padded(text_field(run, "run"), 10, shape.is_ascii),
                     format_size(used_by(run)), format_size(unsigned_field(run, "stored_bytes")),
                     span_of(number_field(run, "seconds")), command_of(run))});
  }
}

bool is_before(const json& left, const json& right, FileOrder order) {
  if (order == FileOrder::kName) return text_field(left, "path") < text_field(right, "path");
  if (order == FileOrder::kAge)
    return number_field(left, "since_seconds") > number_field(right, "since_seconds");
  return unsigned_field(left, "dirty_bytes") > unsigned_field(right, "dirty_bytes");
}

void add_files(Lines& lines, const json& status, const ScreenView& view, const ScreenShape& shape) {
  static constexpr std::array<const char*, 3> kOrders = {"size", "age", "name"};
  std::vector<const json*> files;
  for (const json& file : member(status, "unstored")) files.push_back(&file);
  sort_elements(files, [&view](const json& left, const json& right) {
    return view.is_reversed ? is_before(right, left, view.order)
                            : is_before(left, right, view.order);
  });
  lines.push_back(
      {fmt::format("{:>9} {:>8}  FILES NOT STORED: {}, by {}{}", "DIRTY", "AGE",
                   std::max<std::uint64_t>(files.size(), unsigned_field(status, "unstored_total")),
                   kOrders[static_cast<unsigned>(view.order)],
                   view.is_reversed ? ", reversed" : ""),
       ScreenStyle::kHead});
  const unsigned columns = shape.columns > 20 ? shape.columns - 20 : 0;
  for (const json* file : files) {
    if (lines.size() >= shape.rows) break;
    const bool is_well = text_field(*file, "error").empty();
    const std::string dirty = format_size(unsigned_field(*file, "dirty_bytes"));
    const std::string age = span_of(number_field(*file, "since_seconds"));
    const std::string path = fit(text_field(*file, "path"), columns, shape.is_ascii, true);
    lines.push_back({fmt::format("{:>9} {:>8}  {}", dirty, age, path),
                     is_well ? ScreenStyle::kPlain : ScreenStyle::kTrouble});
  }
}

}  // namespace

std::vector<ScreenLine> screen_lines(const json& status, const RateHistory& rates,
                                     const ScreenView& view, const ScreenShape& shape) {
  const std::size_t body = shape.rows - (shape.has_keys && shape.rows > 0 ? 1 : 0);
  ScreenShape above = shape;
  above.rows = static_cast<unsigned>(body);
  Lines lines;
  lines.push_back(
      {fmt::format("cairn top: node {}, up {}, {} processes, service started anew {}x", view.node,
                   span_of(number_field(status, "uptime_seconds")),
                   member(status, "clients").size(), unsigned_field(status, "restarts")),
       ScreenStyle::kHead});
  if (!view.trouble.empty()) lines.push_back({view.trouble, ScreenStyle::kTrouble});
  add_tiers(lines, status, shape);
  add_rates(lines, rates, shape);
  add_queue(lines, status, rates);
  add_runs(lines, status, view, above);
  add_files(lines, status, view, above);
  if (lines.size() > body) lines.resize(body);
  if (body < shape.rows) {
    lines.resize(body);
    lines.push_back({"q quit  files: s size a age n name r reverse  runs: U S A C R  Tab next node",
                     ScreenStyle::kHead});
  }
  for (ScreenLine& line : lines) {
    line.text = fit(line.text, shape.columns, shape.is_ascii);
    line.text.erase(line.text.find_last_not_of(' ') + 1);
    CAIRN_CHECK(columns_of(line.text) <= shape.columns);
  }
  CAIRN_CHECK(lines.size() <= shape.rows);
  return lines;
}

std::string csv_head() {
  return "time,node,capacity_bytes,used_bytes,dirty_bytes,read_bytes_per_second,"
         "write_bytes_per_second,flush_bytes_per_second,fetch_bytes_per_second,read_bytes,"
         "written_bytes,flushed_bytes,fetched_bytes,runs,processes,unstored_files,restarts\n";
}

std::string csv_line(const json& status, const RateHistory& rates, double unix_seconds) {
  std::uint64_t capacity = 0;
  std::uint64_t used = 0;
  for (const json& tier : member(status, "tiers")) {
    capacity += unsigned_field(tier, "capacity_bytes");
    used += unsigned_field(tier, "used_bytes");
  }
  std::string line =
      fmt::format("{:.3f},{},{},{},{}", unix_seconds, fit(text_field(status, "node"), 48, true),
                  capacity, used, unsigned_field(member(status, "backing"), "dirty_bytes"));
  for (unsigned rate = 0; rate < kRates; ++rate)
    line += fmt::format(",{:.0f}", rates.last(static_cast<Rate>(rate)));
  for (const std::uint64_t bytes : rate_counters(status).bytes) line += fmt::format(",{}", bytes);
  return line + fmt::format(",{},{},{},{}\n", member(status, "runs").size(),
                            member(status, "clients").size(),
                            unsigned_field(status, "unstored_total"),
                            unsigned_field(status, "restarts"));
}

}  // namespace cairn::cli
