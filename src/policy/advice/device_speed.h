// SPDX-License-Identifier: Apache-2.0
// How long a device takes for a number of requests: the one place where advice asks for it. A model
// that was trained on this very device answers for the loads that it was trained with; for all
// others
//
//   time = requests * latency / min(concurrency, queue depth) + bytes / bandwidth
//
// Where a request after a pause takes less than half of the latency, something limits how many
// requests the device gets in a second (a cloud's volume, a control group). The latency is that
// limit's then, and the bytes go on meanwhile:
//   time = max(requests * latency / ..., requests * idle latency / ... + bytes / bandwidth)
//
// That is the physical device of policy/regressions with a knee of 1, from figures that the
// profiler measures for every device: latency of one small request alone, bandwidth of large ones.
//
// Thread safety: pure functions and values. Units: seconds, bytes, bytes per second.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace cairn::advice {

enum class Direction : std::uint8_t { kRead, kWrite };

struct DeviceLoad {
  Direction direction = Direction::kRead;
  double requests = 0;
  double bytes = 0;
  double concurrency = 1;  // requests that programs have in flight at a time
};

// What a trained model says. The error is as DeviceSpeed::error, of this model.
struct TrainedTime {
  double seconds = 0;
  double error = 1;
};

// None for a load that the model was not trained with.
using TrainedDevice = std::function<std::optional<TrainedTime>(const DeviceLoad&)>;

struct DeviceSpeed {
  double read_bandwidth = 1e9;
  double write_bandwidth = 1e9;
  double read_latency = 100e-6;
  double write_latency = 100e-6;
  // After a pause; 0: as the others.
  double read_idle_latency = 0;
  double write_idle_latency = 0;
  double sync_latency = 0;  // of an fsync behind a small write; 0: not known
  // Mean of the fsyncs that the workload has called on this device, as recorded; 0: not known.
  double recorded_sync_latency = 0;
  double queue_depth = 1;  // requests that the device works on at a time
  // True times lie between seconds / error and seconds * error in nine cases of ten; at least 1.
  double error = 2;
  bool is_memory = false;
  std::string source;          // "measured 2026-11-21", "class default: ssd"
  TrainedDevice trained = {};  // empty where nothing was
  double slowness = 1;         // of all slowed()

  bool is_valid() const;
  double latency(Direction direction) const;
  double idle_latency(Direction direction) const;  // not above the latency
  // Requests of this direction are limited to so many in a second.
  bool is_limited(Direction direction) const;
  double fsync_seconds() const { return sync_latency > 0 ? sync_latency : write_latency; }
  // The workload's own fsyncs. They make more durable than a small write (appended bytes, a new
  // name), so they may take longer and never take less: shorter ones in a record went elsewhere, to
  // another device or a log.
  double own_fsync_seconds() const { return std::max(fsync_seconds(), recorded_sync_latency); }
  // The same device if it is so many times slower (below 1: faster). What a trained model says
  // changes by as large a part of its own error: a device that is slower by `error` is one on which
  // the model is wrong by all of its error.
  DeviceSpeed slowed(double factor) const;
};

// What of it programs wait for that do something else for so many seconds between requests: a
// limited device makes good meanwhile for what it was behind.
double waited_seconds(const DeviceSpeed& speed, const DeviceLoad& load, double paused_seconds);

// Requires: speed.is_valid(); a load of no negative number, its concurrency at least 1.
double seconds_of(const DeviceSpeed& speed, const DeviceLoad& load);

}  // namespace cairn::advice
