// SPDX-License-Identifier: Apache-2.0
#include "policy/advice/device_speed.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace cairn::advice {
namespace {

double trained_seconds(const DeviceSpeed& speed, const TrainedTime& time) {
  CAIRN_CHECK(time.seconds >= 0 && time.error >= 1);
  const double whole = std::log(speed.error);
  if (!(whole > 0)) return time.seconds * speed.slowness;
  return time.seconds * std::pow(time.error, std::log(speed.slowness) / whole);
}

}  // namespace

bool DeviceSpeed::is_valid() const {
  for (const double number : {read_bandwidth, write_bandwidth, read_latency, write_latency}) {
    if (!std::isfinite(number) || number <= 0) return false;
  }
  for (const double number :
       {read_idle_latency, write_idle_latency, sync_latency, recorded_sync_latency}) {
    if (!std::isfinite(number) || number < 0) return false;
  }
  return queue_depth >= 1 && error >= 1 && slowness > 0;
}

DeviceSpeed DeviceSpeed::slowed(double factor) const {
  CAIRN_CHECK(factor > 0);
  DeviceSpeed other = *this;
  other.read_bandwidth /= factor;
  other.write_bandwidth /= factor;
  other.read_latency *= factor;
  other.write_latency *= factor;
  other.slowness *= factor;
  other.read_idle_latency *= factor;
  other.write_idle_latency *= factor;
  other.sync_latency *= factor;
  other.recorded_sync_latency *= factor;
  return other;
}

double DeviceSpeed::latency(Direction direction) const {
  return direction == Direction::kRead ? read_latency : write_latency;
}

double DeviceSpeed::idle_latency(Direction direction) const {
  const double idle = direction == Direction::kRead ? read_idle_latency : write_idle_latency;
  return idle > 0 ? std::min(idle, latency(direction)) : latency(direction);
}

bool DeviceSpeed::is_limited(Direction direction) const {
  return 2 * idle_latency(direction) < latency(direction);
}

double seconds_of(const DeviceSpeed& speed, const DeviceLoad& load) {
  CAIRN_CHECK(speed.is_valid());
  CAIRN_CHECK(load.requests >= 0 && load.bytes >= 0);
  CAIRN_CHECK(load.concurrency >= 1);
  if (speed.trained && load.requests > 0) {
    if (const auto time = speed.trained(load)) return trained_seconds(speed, *time);
  }
  const bool reads = load.direction == Direction::kRead;
  const double bandwidth = reads ? speed.read_bandwidth : speed.write_bandwidth;
  const double rounds = load.requests / std::min(load.concurrency, speed.queue_depth);
  const double idle = rounds * speed.idle_latency(load.direction) + load.bytes / bandwidth;
  return speed.is_limited(load.direction)
             ? std::max(rounds * speed.latency(load.direction), idle)
             : rounds * speed.latency(load.direction) + load.bytes / bandwidth;
}

double waited_seconds(const DeviceSpeed& speed, const DeviceLoad& load, double paused_seconds) {
  CAIRN_CHECK(paused_seconds >= 0);
  const double all = seconds_of(speed, load);
  if (!speed.is_limited(load.direction)) return all;
  const double rounds = load.requests / std::min(load.concurrency, speed.queue_depth);
  return std::max(std::min(all, rounds * speed.idle_latency(load.direction)), all - paused_seconds);
}

}  // namespace cairn::advice
