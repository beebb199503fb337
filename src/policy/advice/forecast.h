// SPDX-License-Identifier: Apache-2.0
// How long the programs wait for I/O, without Cairn and with a configuration of it.
//
// Formulas and what they assume: docs/models.md, "Advice". In short: each use of a block is a hit
// of a tier or a miss by the miss-ratio curve at its capacity; what is missed in order is fetched
// ahead while the programs compute; written data go to memory and drain meanwhile.
//
// Intervals are of nine cases in ten, as far as the errors of the devices (DeviceSpeed::error) and
// of sampled curves say it. They hold the error of no assumption.
//
// Thread safety: pure functions. Units: bytes, seconds; capacities of curves in blocks of 64 KiB.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policy/advice/access_summary.h"
#include "policy/advice/device_speed.h"
#include "policy/miss_ratios/miss_ratio_curve.h"

namespace cairn::advice {

inline constexpr const char* kDefaultExpert = "ws-plus";
// A tier keeps 10 % free (evict.high_percent), and lets at most 60 % be dirty before all else
// (flush.dirty_high_percent).
inline constexpr double kUsableShare = 0.9;
inline constexpr double kDirtyShare = 0.6;

struct ExpertMisses {
  std::string name;
  MissRatioCurve curve;  // of all uses
};

struct Reuse {
  MissRatioCurve reads;  // LRU's misses by reads, of all uses by reads
  MissRatioCurve all;    // LRU's, of all uses
  std::vector<ExpertMisses> experts;
  double blocks = 0;      // distinct ones
  double hot_blocks = 0;  // the fewest with 90 % of the uses
  bool is_sampled = false;

  // The one of reads. An expert's misses by reads are LRU's in the ratio of all misses of both.
  double miss_ratio(const std::string& expert, double capacity_bytes) const;
};

struct Workload {
  AccessSummary accesses;
  Reuse reuse;
};

struct FileTierPlan {
  std::string name;
  std::string directory;
  double bytes = 0;
  bool is_durable = false;  // has the log of what programs fsync
  DeviceSpeed speed;
};

struct Machine {
  DeviceSpeed memory;
  DeviceSpeed store;
  double page_cache_bytes = 0;  // that the kernel keeps of the store's files
  // That the kernel takes before programs wait; none: a fifth of its memory.
  std::optional<double> dirty_bytes_max = std::nullopt;
  double memory_bytes_max = 0;  // for a RAM tier
  // Bytes per second into memory that nobody had before; 0: as fast as memory is.
  double fresh_tier_bandwidth = 0;
  double fresh_cache_bandwidth = 0;  // into files of the kernel's cache
  double call_seconds = 500e-9;      // a system call that copies next to nothing
  double processors = 1;
};

enum class DurableLevel : std::uint8_t { kStore, kNode };

struct Plan {
  std::string name;
  double ram_bytes = 0;
  std::vector<FileTierPlan> tiers;
  std::string expert = kDefaultExpert;
  std::string policy = "max-bandwidth";
  std::string trigger = "periodic";
  std::string mode = "persistent-async";
  DurableLevel durability = DurableLevel::kStore;
  double prefetch_percent = 25;
  double flush_streams = 2;

  double tier_bytes() const;
  // The durable tier; the first one where none is said to be. Null without file tiers.
  const FileTierPlan* log_tier() const;
};

struct Interval {
  double low = 0;
  double high = 0;
};

// What the seconds of a forecast consist of.
struct Parts {
  double store_reads = 0;
  double tier_reads = 0;
  double copies = 0;  // the processor: calls, and bytes from and to memory
  double store_writes = 0;
  double fsyncs = 0;

  double seconds() const { return store_reads + tier_reads + copies + store_writes + fsyncs; }
};

struct Forecast {
  Parts parts;
  Interval interval;  // of the seconds
  double drain_seconds = 0;
  double miss_ratio = 0;  // of reads, in all tiers together

  double seconds() const { return parts.seconds(); }
};

Forecast forecast_without(const Workload& work, const Machine& machine);
Forecast forecast_with(const Workload& work, const Machine& machine, const Plan& plan);

// How much less a plan takes, as a share of the time without Cairn (below 0: more). Both sides have
// the same store, so that its error does not count twice.
struct Gain {
  double share = 0;
  Interval interval;
};
Gain gain_of(const Workload& work, const Machine& machine, const Plan& plan);

// The time in which the programs do something else than I/O.
double compute_seconds(const Workload& work, const Machine& machine);

}  // namespace cairn::advice
