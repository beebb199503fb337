// SPDX-License-Identifier: Apache-2.0
#include "service/sampling/node_gauges.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace cairn::node {
namespace {

struct NamedCounter {
  Counter counter;
  const char* name;
};

// Those of the run's own processes.
constexpr std::array<NamedCounter, 9> kOfRun = {
    {{Counter::kReads, "reads"},
     {Counter::kReadBytes, "read_bytes"},
     {Counter::kMissBytes, "miss_bytes"},
     {Counter::kWrites, "writes"},
     {Counter::kWriteBytes, "write_bytes"},
     {Counter::kWriteThroughBytes, "write_through_bytes"},
     {Counter::kIoCycles, "io_time_ns"},
     {Counter::kOpens, "opens"},
     {Counter::kArrayBytes, "array_bytes"}}};
// The service does these for the whole node, and clients do some of them.
constexpr std::array<NamedCounter, 4> kOfNode = {{{Counter::kFlushedBytes, "flushed_bytes"},
                                                  {Counter::kEvictedBlocks, "evicted_blocks"},
                                                  {Counter::kPromotedBlocks, "promoted_blocks"},
                                                  {Counter::kDemotedBlocks, "demoted_blocks"}}};

std::uint64_t level(std::uint64_t whole, std::uint64_t free) {
  return whole - std::min(whole, free);
}

}  // namespace

void NodeGauges::find_columns() {
  if (!columns_.empty()) return;
  for (const NamedCounter& each : kOfRun) columns_.push_back({each.name});
  for (const NamedCounter& each : kOfNode) columns_.push_back({each.name});
  add_columns_of_tiers();
  for (const char* name : {"dirty_bytes", "processes", "tier_failures"})
    columns_.push_back({name, false});
  columns_.push_back({"fsyncs_logged"});
  columns_.push_back({"fsyncs_stored"});
  for (unsigned number = 0; number < FetchJournal::kPredictorsMax; ++number) {
    const std::string name = predictor_name_(number);
    if (name.empty()) continue;
    predictors_.push_back(number);
    for (const char* what : {"fetched_bytes.", "used_ahead_bytes.", "evicted_unused_bytes."})
      columns_.push_back({what + name});
  }
}

void NodeGauges::add_columns_of_tiers() {
  for (unsigned tier = 0; tier < memory_.tier_count(); ++tier) {
    columns_.push_back({"hit_bytes." + tier_name(config_, tier)});
    columns_.push_back({"used_bytes." + tier_name(config_, tier), false});
  }
}

std::vector<std::uint64_t> NodeGauges::read(std::uint32_t run) const {
  const CounterSums mine = clients_.run_totals(run);
  const CounterSums all = clients_.totals();
  std::vector<std::uint64_t> row;
  row.reserve(columns_.size());
  for (const NamedCounter& each : kOfRun) row.push_back(mine[static_cast<unsigned>(each.counter)]);
  for (const NamedCounter& each : kOfNode) row.push_back(all[static_cast<unsigned>(each.counter)]);
  std::uint64_t failures = 0;
  for (unsigned tier = 0; tier < memory_.tier_count(); ++tier) {
    const auto id = static_cast<TierId>(tier);
    const BucketPool& pool = memory_.pool(id);
    row.push_back(mine[static_cast<unsigned>(hit_bytes_counter(id))]);
    row.push_back(level(pool.slab_count(), pool.free_slabs()) * kBlockBytes);
    failures += memory_.failure_board().tiers[tier].count.load();
  }
  row.push_back(memory_.flusher_board().dirty_bytes.load());
  row.push_back(clients_.active_count(run));
  row.push_back(failures);
  const DurabilityFigures durability = durability_.figures();
  row.push_back(durability.counts == nullptr ? 0 : durability.counts->logged.load());
  row.push_back(durability.counts == nullptr ? 0 : durability.counts->stored.load());
  for (const unsigned number : predictors_) {
    const FetchJournal::Line& line = memory_.fetches().of(number);
    row.push_back(line.fetched_bytes.load(std::memory_order_relaxed));
    row.push_back(line.used_bytes.load(std::memory_order_relaxed));
    row.push_back(line.evicted_unused_bytes.load(std::memory_order_relaxed));
  }
  CAIRN_CHECK(row.size() == columns_.size());
  return row;
}

}  // namespace cairn::node
