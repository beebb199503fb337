// SPDX-License-Identifier: Apache-2.0
#include "service/control/status_report.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "service/attachment/sweep.h"
#include "service/capacity/tier_watch.h"
#include "service/control/drain_request.h"
#include "service/process/log_file.h"

namespace cairn::node {
namespace {

std::uint64_t get(const CounterSums& sums, Counter counter) {
  return sums[static_cast<unsigned>(counter)];
}

// The pages that really back the RAM tier, from smaps: the option is only a wish.
std::string huge_pages_got(const NodeMemory& memory) {
  if (memory.data().huge_pages() == HugePages::kReserved) return "hugetlb";
  char start[32];
  std::snprintf(start, sizeof start, "%lx-", reinterpret_cast<unsigned long>(memory.data().base()));
  std::FILE* file = std::fopen("/proc/self/smaps", "re");
  if (file == nullptr) return "unknown";
  char line[512];
  bool inside = false;
  unsigned long mapped_kib = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, start, std::strlen(start)) == 0) {
      inside = true;
    } else if (inside && std::sscanf(line, "ShmemPmdMapped: %lu kB", &mapped_kib) == 1) {
      break;
    }
  }
  std::fclose(file);
  if (memory.data().huge_pages() == HugePages::kNever) return "never";
  return mapped_kib != 0 ? "transparent" : "asked, none mapped yet";
}

std::uint64_t used_bytes(const BucketPool& pool) {
  return std::uint64_t{pool.slab_count() - std::min(pool.slab_count(), pool.free_slabs())} *
         kBlockBytes;
}

std::uint64_t hit_bytes_of_file_tiers(const CounterSums& sums) {
  std::uint64_t bytes = 0;
  for (unsigned tier = 1; tier < kTiersMax; ++tier)
    bytes += get(sums, hit_bytes_counter(static_cast<TierId>(tier)));
  return bytes;
}

Json counters_json(const CounterSums& sums) {
  return {{"reads", get(sums, Counter::kReads)},
          {"read_bytes", get(sums, Counter::kReadBytes)},
          {"read_hits", get(sums, Counter::kReadHits)},
          {"read_hit_bytes_ram", get(sums, Counter::kHitBytesMemory)},
          {"read_hit_bytes_file", hit_bytes_of_file_tiers(sums)},
          {"read_miss_bytes", get(sums, Counter::kMissBytes)},
          {"read_around_bytes", get(sums, Counter::kAroundBytes)},
          {"writes", get(sums, Counter::kWrites)},
          {"write_bytes", get(sums, Counter::kWriteBytes)},
          {"write_through_bytes", get(sums, Counter::kWriteThroughBytes)},
          {"flushed_bytes", get(sums, Counter::kFlushedBytes)},
          {"evicted_blocks", get(sums, Counter::kEvictedBlocks)},
          {"promoted_blocks", get(sums, Counter::kPromotedBlocks)},
          {"demoted_blocks", get(sums, Counter::kDemotedBlocks)},
          {"io_time_ns", get(sums, Counter::kIoCycles)},
          {"opens", get(sums, Counter::kOpens)},
          {"array_bytes", get(sums, Counter::kArrayBytes)}};
}

std::string place_name(const NodeConfig& config, unsigned place) {
  if (place == MoveJournal::kStore) return "backing store";
  return place == MoveJournal::kDropped ? std::string("dropped") : tier_name(config, place);
}

// The moves in the order of the tiers: one entry per way and reason that there was.
Json moves_json(const NodeConfig& config, const NodeMemory& memory) {
  Json moves = Json::array();
  for (unsigned from = 0; from < MoveJournal::kPlaces; ++from) {
    for (unsigned to = 0; to < MoveJournal::kPlaces; ++to) {
      for (unsigned reason = 0; reason < kPlacementReasons; ++reason) {
        const auto why = static_cast<PlacementReason>(reason);
        const MoveJournal::Cell& cell = memory.journal().at(from, to, why);
        const std::uint64_t blocks = cell.blocks.load(std::memory_order_relaxed);
        if (blocks == 0) continue;
        moves.push_back({{"from", place_name(config, from)},
                         {"to", place_name(config, to)},
                         {"reason", word_for(why)},
                         {"blocks", blocks},
                         {"bytes", cell.bytes.load(std::memory_order_relaxed)}});
      }
    }
  }
  return moves;
}

Json errors_json(const DirtyView& view) {
  Json errors = Json::array();
  for (const UnstoredFile& file : view.files) {
    if (file.error == 0 || errors.size() >= kUnstoredMax) break;
    errors.push_back({{"path", file.path},
                      {"errno", file.error},
                      {"message", std::strerror(file.error)},
                      {"count", file.failures},
                      {"since_seconds", file.since_seconds}});
  }
  return errors;
}

std::uint64_t per_second(std::uint64_t now, std::uint64_t before, double seconds) {
  return seconds <= 0 || now < before
             ? 0
             : static_cast<std::uint64_t>(static_cast<double>(now - before) / seconds);
}

Json foreign_json(const std::vector<ForeignProgram>& programs) {
  Json list = Json::array();
  for (const ForeignProgram& program : programs) {
    list.push_back(
        {{"pid", program.pid}, {"command", program.command}, {"reason", program.reason}});
  }
  return list;
}

Json clients_json(const std::vector<ClientInfo>& clients) {
  Json list = Json::array();
  for (const ClientInfo& client : clients) {
    list.push_back({{"slot", client.slot},
                    {"pid", client.pid},
                    {"command", client.command},
                    {"run", std::to_string(client.run)}});
  }
  return list;
}

// Files that are used past the buffers for want of anything better.
Json unserved_json(const UnservedFiles& unserved) {
  Json reasons = Json::object();
  const UnservedFiles::Counts counts = unserved.counts();
  for (unsigned reason = 0; reason < counts.size(); ++reason) {
    if (counts[reason] != 0) reasons[text_of(static_cast<UnservedReason>(reason))] = counts[reason];
  }
  return {{"files", unserved.count()}, {"since_start", reasons}};
}

// The holdings of a run in each tier.
Json holdings_json(const NodeConfig& config, const AccountRegistry& accounts, std::uint32_t run) {
  Json list = Json::array();
  for (const TierHolding& holding : accounts.holdings_of(run)) {
    list.push_back({{"name", tier_name(config, holding.tier)},
                    {"used_bytes", holding.used},
                    {"reserved_bytes", holding.reserved},
                    {"share_bytes", holding.share}});
  }
  return list;
}

// What the operations of a tier have met.
struct TierFailures {
  TierFailures(const NodeMemory& memory, TierId tier)
      : is_out(!memory.takes_blocks(tier)),
        hangs(memory.failure_board().hangs(tier)),
        count(memory.failure_board().tiers[raw(tier)].count.load()),
        error(static_cast<int>(memory.failure_board().tiers[raw(tier)].error.load())) {}

  const char* state() const {
    if (is_out) return hangs ? "out of service, does not answer" : "out of service";
    return count != 0 ? "failing" : "in service";
  }
  std::string last_error() const { return count == 0 ? "" : device_error_text(error); }

  const bool is_out;
  const bool hangs;
  const std::uint64_t count;
  const int error;
};

std::uint32_t restarts_of(const KeptLife* life) {
  return life == nullptr ? 0 : life->restarts.load();
}

// How the service before this one ended; empty for the first.
std::string last_end_of(const KeptLife* life) {
  if (restarts_of(life) == 0) return {};
  const int signal = life->last_signal.load();
  if (signal == 0) return "killed with its keeper";
  return "killed by signal " + std::to_string(signal);
}

// The reservations of rules, and the bytes of their files there.
Json reservations_json(const NodeConfig& config, const AccountRegistry& accounts) {
  Json list = Json::array();
  for (const RuleHolding& holding : accounts.rule_holdings()) {
    Json entry = {{"pattern", holding.rule.pattern},
                  {"tier", tier_name(config, holding.tier)},
                  {"used_bytes", holding.used},
                  {"reserved_bytes", holding.reserved}};
    if (holding.rule.run != 0) entry["run"] = std::to_string(holding.rule.run);
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

StatusReport::Sample StatusReport::sample() const {
  const CounterSums sums = from_.clients.totals();
  return Sample{monotonic_ns(), get(sums, Counter::kReadBytes), get(sums, Counter::kWriteBytes),
                get(sums, Counter::kFlushedBytes)};
}

StatusReport::Sample StatusReport::baseline() {
  constexpr std::int64_t kRecentNanos = 5 * kNanosPerSecond;
  constexpr std::int64_t kTooRecentNanos = 100'000'000;
  const std::int64_t now = monotonic_ns();
  if (now - last_.at_ns < kRecentNanos && now - last_.at_ns > kTooRecentNanos) return last_;
  const Sample first = sample();
  const bool at_work =
      from_.clients.active_count() != 0 || from_.memory.flusher_board().dirty_bytes.load() != 0;
  if (at_work) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return first;
}

Json StatusReport::tiers(const DirtyView& dirty) const {
  const NodeMemory& memory = from_.memory;
  Json tiers = Json::array();
  for (unsigned index = 0; index < memory.tier_count(); ++index) {
    const auto tier = static_cast<TierId>(index);
    const BucketPool& pool = memory.pool(tier);
    const bool ram = index == 0;
    const bool is_swap = index > from_.config.tiers.size();
    CAIRN_CHECK(!is_swap || index == from_.config.tiers.size() + 1);  // one, and the last
    const TierFailures failures(memory, tier);
    tiers.push_back({{"name", tier_name(from_.config, index)},
                     {"kind", ram       ? "ram"
                              : is_swap ? "swap"
                                        : "file"},
                     {"path", ram       ? std::string()
                              : is_swap ? from_.config.swap_directory
                                        : from_.config.tiers[index - 1].directory},
                     {"capacity_bytes", std::uint64_t{pool.slab_count()} * kBlockBytes},
                     {"used_bytes", used_bytes(pool)},
                     {"dirty_bytes", dirty.bytes_per_tier[index]},
                     {"broken_pages", memory.failure_board().tiers[index].broken.load()},
                     {"huge_pages", ram ? huge_pages_got(memory) : std::string("-")},
                     {"state", failures.state()},
                     {"failures", failures.count},
                     {"last_error", failures.last_error()}});
  }
  return tiers;
}

Json StatusReport::runs(std::int64_t now_ns) const {
  Json runs = Json::array();
  for (const Run& run : from_.runs.all()) {
    const Flusher::RunShare share = from_.flusher.share_of(run.number());
    runs.push_back({{"run", run.id},
                    {"weight", share.weight},
                    {"tiers", holdings_json(from_.config, from_.accounts, run.number())},
                    {"stored_bytes", share.stored_bytes},
                    {"phase", share.in_io ? "io" : "compute"},
                    {"command_line", run.command_line},
                    {"directory", run.directory},
                    {"seconds", static_cast<double>(now_ns - run.began_ns) / 1e9}});
  }
  return runs;
}

Json StatusReport::backing(const DirtyView& dirty, const Sample& before, const Sample& now) {
  const double seconds = static_cast<double>(now.at_ns - before.at_ns) / 1e9;
  return {{"dirty_bytes", dirty.bytes},
          {"dirty_files", dirty.files.size()},
          {"flushed_bytes", now.flushed_bytes},
          {"flush_rate_bytes_per_second",
           per_second(now.flushed_bytes, before.flushed_bytes, seconds)}};
}

// The level of an fsync, and what the durable log has.
Json durability_json(const NodeConfig& config, const DurabilityFigures& figures) {
  Json json = {{"level", name_of(config.durability)}, {"has_log", figures.has_log}};
  if (!figures.has_log) return json;
  const DurabilityCounts& counts = *figures.counts;
  json["directory"] = config.tiers[durable_tier_of(config)].directory;
  json["log_capacity_bytes"] = figures.log.capacity_bytes;
  json["log_used_bytes"] = figures.log.used_bytes;
  json["log_appended_bytes"] = figures.log.appended_bytes;
  json["files_in_log"] = figures.files;
  json["commits"] = figures.log.commits;
  json["device_flushes"] = figures.log.flushes;
  json["logged"] = counts.logged.load();
  json["stored"] = counts.stored.load();
  json["stored_log_full"] = counts.stored_full.load();
  json["stored_log_failed"] = counts.stored_failed.load();
  json["retired_files"] = counts.retired.load();
  json["trouble"] = figures.trouble;
  if (config.checkpoint_seconds == 0) return json;
  json["checkpoint"] = {
      {"interval_seconds", config.checkpoint_seconds},
      {"count", counts.checkpoints.load()},
      {"bytes", counts.checkpoint_bytes.load()},
      {"files_without_room", counts.checkpoint_skipped.load()},
      {"files_stored", counts.checkpoint_stored.load()},
      {"share_percent", Checkpoints::kSharePercent},
      {"took_seconds", static_cast<double>(counts.checkpoint_took_ns.load()) / 1e9},
      {"age_seconds", figures.checkpoint_age_seconds}};
  return json;
}

std::uint32_t StatusReport::leased_slabs() const {
  std::uint32_t leased = 0;
  for (unsigned tier = 0; tier < from_.memory.tier_count(); ++tier)
    leased += from_.memory.pool(static_cast<TierId>(tier)).leased_slabs();
  return leased;
}

Json StatusReport::status() {
  const std::lock_guard lock(mutex_);
  const NodeMemory& memory = from_.memory;
  const Sample before = baseline();
  const Sample now = sample();
  CAIRN_CHECK(before.at_ns <= now.at_ns);
  last_ = now;
  const double seconds = static_cast<double>(now.at_ns - before.at_ns) / 1e9;
  const DirtyView dirty = view_dirty(memory, from_.files, kUnstoredMax);
  const CounterSums sums = from_.clients.totals();
  return {{"version", CAIRN_VERSION},
          {"node", from_.config.name},
          {"service_pid", ::getpid()},
          {"restarts", restarts_of(from_.life)},
          {"keeper_pid", from_.memory.service_board().keeper.load()},
          {"keepers_replaced", from_.life == nullptr ? 0 : from_.life->new_keepers.load()},
          {"last_end", last_end_of(from_.life)},
          {"uptime_seconds", static_cast<double>(now.at_ns - from_.started_ns) / 1e9},
          {"directory", from_.config.node_directory},
          {"tiers", tiers(dirty)},
          {"backing", backing(dirty, before, now)},
          {"rates",
           {{"read_bytes_per_second", per_second(now.read_bytes, before.read_bytes, seconds)},
            {"write_bytes_per_second", per_second(now.write_bytes, before.write_bytes, seconds)}}},
          {"counters", counters_json(sums)},
          {"moves", moves_json(from_.config, memory)},
          {"fetches", from_.learning.fetches()},
          {"unpacked_ahead", from_.arrays == nullptr ? 0 : from_.arrays->unpacked_ahead()},
          {"durability", durability_json(from_.config, from_.durability.figures())},
          {"warnings", kept_warnings()},
          {"remembered", from_.learning.remembered()},
          {"replacement", from_.learning.replacement()},
          {"events", from_.learning.events()},
          {"clients", clients_json(from_.clients.active())},
          {"unstored", unstored_json(dirty.files)},
          {"unstored_total", dirty.files.size()},
          {"errors", errors_json(dirty)},
          {"foreign", foreign_json(from_.clients.foreign_running())},
          {"unserved", unserved_json(from_.unserved)},
          {"runs", runs(now.at_ns)},
          {"reservations", reservations_json(from_.config, from_.accounts)},
          {"control_bytes", memory.control().size_bytes()},
          {"data_bytes", memory.data().size_bytes()},
          {"objects", memory.objects().live_count()},
          {"open_store_files", from_.files.count()},
          {"audit_owed", from_.reaper.owes_audit()},
          {"leased_slabs", leased_slabs()},
          {"locks_held_by_dead", count_dead_locks(memory)},
          {"slots_in_use", from_.clients.busy_count()}};
}

Json StatusReport::run(const Run& run, double drain_seconds) const {
  const CounterSums sums = from_.clients.run_totals(run.number());
  std::uint64_t flushed = get(sums, Counter::kFlushedBytes);
  for (const CounterShard& shard : from_.memory.slot(ClientTable::kServiceSlot).shards) {
    flushed += shard.get(Counter::kFlushedBytes);
  }
  flushed -= std::min(flushed, run.flushed_bytes_before);
  Json hits = {{"ram", get(sums, Counter::kHitBytesMemory)}};
  for (unsigned tier = 1; tier < from_.memory.tier_count(); ++tier) {
    hits[tier_name(from_.config, tier)] = get(sums, hit_bytes_counter(static_cast<TierId>(tier)));
  }
  return {{"wall_seconds", static_cast<double>(monotonic_ns() - run.began_ns) / 1e9},
          {"io_seconds", static_cast<double>(get(sums, Counter::kIoCycles)) / 1e9},
          {"read_bytes", get(sums, Counter::kReadBytes)},
          {"written_bytes", get(sums, Counter::kWriteBytes)},
          {"hit_bytes", hits},
          {"miss_bytes", get(sums, Counter::kMissBytes)},
          {"array_bytes", get(sums, Counter::kArrayBytes)},
          {"arrays", from_.arrays == nullptr ? Json::object() : from_.arrays->of_run(run.number())},
          {"write_through_bytes", get(sums, Counter::kWriteThroughBytes)},
          {"fetches", from_.learning.fetches()},
          {"warnings", kept_warnings()},
          {"flushed_bytes", flushed},
          {"drain_seconds", drain_seconds},
          {"attached", from_.clients.has_run_attached(run.number())},
          {"foreign", foreign_json(from_.clients.foreign_of_run(run.number()))},
          {"clients_left", from_.clients.active_count(run.number())}};
}

}  // namespace cairn::node
