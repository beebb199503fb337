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
  return other;
}

double seconds_of(const DeviceSpeed& speed, const DeviceLoad& load) {
  CAIRN_CHECK(speed.is_valid());
  CAIRN_CHECK(load.requests >= 0 && load.bytes >= 0);
  CAIRN_CHECK(load.concurrency >= 1);
  if (speed.trained && load.requests > 0) {
    if (const auto time = speed.trained(load)) return trained_seconds(speed, *time);
  }
  const bool reads = load.direction == Direction::kRead;
  const double latency = reads ? speed.read_latency : speed.write_latency;
  const double bandwidth = reads ? speed.read_bandwidth : speed.write_bandwidth;
  return load.requests * latency / std::min(load.concurrency, speed.queue_depth) +
         load.bytes / bandwidth;
}

}  // namespace cairn::advice
