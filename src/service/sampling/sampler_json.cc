// SPDX-License-Identifier: Apache-2.0
// The timeline of a run as docs/reference.md has it.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "service/sampling/sampler.h"

namespace cairn::node {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kHeatCells = 256;

double rounded_seconds(std::int64_t nanos) {
  return std::round(static_cast<double>(nanos) / 1e6) / 1e3;
}

double seconds_of(std::uint64_t nanos) { return static_cast<double>(nanos) / 1e9; }

// Whether a column is left out when it never was anything but 0: most predictors never fetch.
bool may_be_left_out(const std::string& name) { return name.find('.') != std::string::npos; }

// What an estimate of the time without Cairn needs.
Json store_json(const StoreFigures::Figures& figures) {
  if (figures == nullptr) return Json::object();
  return {{"measured", figures->measured},
          {"from", figures->source},
          {"read_bandwidth", figures->read_bandwidth},
          {"write_bandwidth", figures->write_bandwidth},
          {"read_latency", figures->read_latency},
          {"write_latency", figures->write_latency}};
}

Json share_json(const ProcessShare& share) {
  return {{"pid", share.pid},
          {"command", share.command},
          {"io_seconds", static_cast<double>(share.io_ns) / 1e9},
          {"read_bytes", share.read_bytes},
          {"miss_bytes", share.miss_bytes},
          {"written_bytes", share.write_bytes}};
}

}  // namespace

Json Sampler::json_of(const Series& series) const {
  CAIRN_CHECK(series.ring.size() > 0);
  const std::uint32_t run = series.run.number();
  const std::int64_t first = series.ring.time(0);
  const std::int64_t last = series.ring.time(series.ring.size() - 1);
  Json leaders = Json::array();
  for (const Leader& each : series.leaders) {
    leaders.push_back({{"seconds", rounded_seconds(each.at_ns - first)},
                       {"tier", each.tier},
                       {"expert", each.expert}});
  }
  const FileCosts::Totals files = from_.files.totals(run);
  const std::vector<FileCost> costs = from_.files.costliest(run, kFilesShown);
  Json tiers = Json::array();
  for (unsigned tier = 0; tier < from_.memory.tier_count(); ++tier)
    tiers.push_back(
        {{"name", tier_name(from_.config, tier)},
         {"capacity_bytes",
          std::uint64_t{from_.memory.pool(static_cast<TierId>(tier)).slab_count()} * kBlockBytes}});
  return {{"schema", "cairn-timeline-1"},
          {"run", series.run.id},
          {"node", from_.config.name},
          {"command_line", series.run.command_line},
          {"directory", series.run.directory},
          {"began_unix_seconds", rounded_seconds(series.began_unix_ns)},
          {"seconds", rounded_seconds(last - first)},
          {"interval_seconds", static_cast<double>(series.ring.interval_ns()) / 1e9},
          {"tiers", tiers},
          {"series", columns_of(series)},
          {"leaders", leaders},
          {"files", files_of(costs)},
          {"files_read", files.read},
          {"files_written", files.written},
          {"fsyncs", files.fsyncs},
          {"heat", heat_of(costs)},
          {"processes", processes_of(series)},
          {"durability", name_of(from_.config.durability)},
          {"store", store_json(from_.store.last())}};
}

// Sums begin at 0 with the run.
Json Sampler::columns_of(const Series& series) const {
  const SampleRing& ring = series.ring;
  Json columns = Json::object();
  Json times = Json::array();
  for (std::size_t row = 0; row < ring.size(); ++row)
    times.push_back(rounded_seconds(ring.time(row) - ring.time(0)));
  columns["seconds"] = std::move(times);
  const std::vector<NodeGauges::Column>& all = from_.gauges.columns();
  for (std::size_t column = 0; column < all.size(); ++column) {
    const std::uint64_t before = all[column].grows ? ring.value(0, column) : 0;
    Json values = Json::array();
    std::uint64_t most = 0;
    for (std::size_t row = 0; row < ring.size(); ++row) {
      const std::uint64_t value = ring.value(row, column);
      values.push_back(value - std::min(value, before));
      most = std::max(most, value - std::min(value, before));
    }
    if (most != 0 || !may_be_left_out(all[column].name))
      columns[all[column].name] = std::move(values);
  }
  return columns;
}

Json Sampler::files_of(const std::vector<FileCost>& costs) const {
  Json list = Json::array();
  for (const FileCost& cost : costs) {
    list.push_back({{"path", cost.path},
                    {"miss_bytes", cost.miss_bytes},
                    {"late_bytes", cost.late_bytes},
                    {"below_bytes", cost.below_bytes},
                    {"hit_bytes", cost.hit_bytes},
                    {"waits", cost.waits},
                    {"written_bytes", cost.written_bytes},
                    {"fsyncs", cost.fsyncs},
                    {"read_seconds", seconds_of(cost.read_ns)},
                    {"write_seconds", seconds_of(cost.write_ns)},
                    {"fsync_seconds", seconds_of(cost.fsync_ns)}});
  }
  return list;
}

// The map of the costliest file that has one: the hottest segment of each cell, as the logarithm to
// the base 2; null where nobody has read.
Json Sampler::heat_of(const std::vector<FileCost>& costs) const {
  for (const FileCost& cost : costs) {
    const auto picture = from_.heat.picture_of(cost.object, cost.path);
    if (!picture || picture->logarithms.empty()) continue;
    const std::uint64_t bytes = std::max<std::uint64_t>(picture->segment_bytes, 1);
    const std::size_t segments = std::max<std::size_t>(picture->logarithms.size(),
                                                       (picture->file_bytes + bytes - 1) / bytes);
    const std::size_t cells = std::min(segments, kHeatCells);
    std::vector<double> hottest(cells, -INFINITY);
    for (std::size_t segment = 0; segment < picture->logarithms.size(); ++segment) {
      double& cell = hottest[segment * cells / segments];
      cell = std::max(cell, picture->logarithms[segment]);
    }
    Json list = Json::array();
    for (const double each : hottest)
      list.push_back(std::isinf(each) ? Json() : Json(each / std::numbers::ln2));
    return {{"path", cost.path}, {"file_bytes", picture->file_bytes}, {"cells", list}};
  }
  return Json::object();
}

Json Sampler::processes_of(const Series& series) const {
  const std::uint32_t run = series.run.number();
  const std::vector<ProcessShare> shares = shares_.of(run, from_.clients.counted(run));
  Json list = Json::array();
  ProcessShare others;
  std::size_t counted = 0;
  for (const ProcessShare& share : shares) {
    // A script starts many processes that touch no buffered file.
    const bool has_worked = share.io_ns + share.read_bytes + share.write_bytes != 0;
    if (has_worked && counted++ < kProcessesShown && share.pid != 0) {
      list.push_back(share_json(share));
    } else {
      others.add(share);
    }
  }
  if (shares.size() > list.size()) {
    others.command = std::to_string(shares.size() - list.size()) + " others";
    list.push_back(share_json(others));
  }
  return {{"count", shares.size()}, {"list", list}};
}

}  // namespace cairn::node
