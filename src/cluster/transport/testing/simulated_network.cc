// SPDX-License-Identifier: Apache-2.0
#include "cluster/transport/testing/simulated_network.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "base/check.h"
#include "base/fnv1a.h"
#include "cluster/transport/testing/simulated_transport.h"

namespace cairn::cluster {

namespace {

constexpr std::int64_t kMillion = 1'000'000;
// TCP gives up on a peer that answers with a reset after 2 to 60 ms (research/transport.md, 3).
constexpr std::int64_t kResetMinNs = 2 * kMillisecond;
constexpr std::int64_t kResetMaxNs = 60 * kMillisecond;

std::int64_t scaled(std::int64_t span_ns, std::int64_t numerator, std::int64_t denominator) {
  return static_cast<std::int64_t>(static_cast<__int128>(span_ns) * numerator / denominator);
}

}  // namespace

SimulatedNetwork::SimulatedNetwork(std::uint32_t nodes, std::uint64_t seed) : random_(seed) {
  CAIRN_CHECK(nodes >= 1 && nodes <= kNodesMax);
  hosts_.resize(nodes);
  for (std::uint32_t i = 0; i < nodes; ++i) {
    // Machines have been up for different times: no two clocks agree.
    hosts_[i].base_clock_ns = kSecond + random_.below(1'000'000) * kMillisecond;
    transports_.push_back(std::make_unique<SimulatedTransport>(*this, NodeId{i + 1}));
  }
}

SimulatedNetwork::~SimulatedNetwork() = default;

SimulatedNetwork::Host& SimulatedNetwork::host(NodeId node) {
  CAIRN_CHECK(raw(node) >= 1 && raw(node) <= hosts_.size());
  return hosts_[raw(node) - 1];
}

const SimulatedNetwork::Host& SimulatedNetwork::host(NodeId node) const {
  CAIRN_CHECK(raw(node) >= 1 && raw(node) <= hosts_.size());
  return hosts_[raw(node) - 1];
}

Transport& SimulatedNetwork::transport(NodeId node) {
  CAIRN_CHECK(raw(node) >= 1 && raw(node) <= transports_.size());
  return *transports_[raw(node) - 1];
}

std::int64_t SimulatedNetwork::clock_ns(NodeId node) const {
  const Host& of = host(node);
  return of.base_clock_ns +
         scaled(now_ns_ - of.base_time_ns, kMillion + of.parts_per_million, kMillion);
}

void SimulatedNetwork::set_clock_rate(NodeId node, std::int32_t parts_per_million) {
  CAIRN_CHECK(parts_per_million > -kMillion / 2 && parts_per_million < kMillion);
  Host& of = host(node);
  of.base_clock_ns = clock_ns(node);
  of.base_time_ns = now_ns_;
  of.parts_per_million = parts_per_million;
  note("clock of " + std::to_string(raw(node)) + " runs by " + std::to_string(parts_per_million) +
       " ppm");
}

void SimulatedNetwork::push(std::int64_t time_ns, NodeId node, std::function<void()> call) {
  const std::uint32_t life = node == NodeId::kNone ? 0 : host(node).life;
  events_.push({std::max(time_ns, now_ns_), next_number_++, node, life, std::move(call)});
}

void SimulatedNetwork::at(std::int64_t time_ns, std::function<void()> call) {
  push(time_ns, NodeId::kNone, std::move(call));
}

void SimulatedNetwork::call_at(NodeId node, std::int64_t clock_ns_wanted,
                               std::function<void()> call) {
  const Host& of = host(node);
  const std::int64_t span = scaled(std::max<std::int64_t>(0, clock_ns_wanted - of.base_clock_ns),
                                   kMillion, kMillion + of.parts_per_million);
  push(of.base_time_ns + span + 1, node, std::move(call));
}

void SimulatedNetwork::run_until(std::int64_t time_ns, const std::function<void()>& look) {
  while (!events_.empty() && events_.top().time_ns <= time_ns) {
    const Event event = events_.top();
    events_.pop();
    CAIRN_CHECK(event.time_ns >= now_ns_);
    now_ns_ = event.time_ns;
    if (event.node != NodeId::kNone) {
      Host& of = host(event.node);
      if (!of.is_up || of.life != event.life) continue;
      if (of.is_paused) {
        of.held.push_back(event.call);
        continue;
      }
    }
    event.call();
    if (look) look();
  }
  now_ns_ = std::max(now_ns_, time_ns);
}

bool SimulatedNetwork::happens(std::uint32_t thousandths) {
  return thousandths > 0 && random_.below(1000) < thousandths;
}

void SimulatedNetwork::carry(NodeId from, NodeId to, std::int64_t deadline_clock_ns, Bytes frame) {
  ++counts_.sent;
  if (from == to) {
    push(now_ns_ + kMicrosecond, to, [this, from, to, deadline_clock_ns, frame = std::move(frame)] {
      arrive(from, to, deadline_clock_ns, frame);
    });
    return;
  }
  if (is_cut(from, to) || happens(faults_.dropped)) {
    ++counts_.dropped;
    return;
  }
  const bool is_repeated = happens(faults_.repeated);
  counts_.repeated += is_repeated ? 1 : 0;
  if (happens(faults_.damaged)) {
    frame[random_.below(static_cast<std::uint32_t>(frame.size()))] ^= std::byte{1};
  }
  for (int copy = 0; copy < (is_repeated ? 2 : 1); ++copy) {
    const auto spread = static_cast<std::uint32_t>(faults_.delay_max_ns - faults_.delay_min_ns + 1);
    std::int64_t delay = faults_.delay_min_ns + random_.below(spread);
    if (happens(faults_.late)) {
      delay += random_.below(static_cast<std::uint32_t>(faults_.late_max_ns / kMicrosecond)) *
               kMicrosecond;
    }
    // This event belongs to no host: one that is down when it comes still answers with a reset.
    at(now_ns_ + delay, [this, from, to, deadline_clock_ns, frame] {
      Host& of = host(to);
      if (of.is_up && of.is_paused) {
        of.held.push_back([this, from, to, deadline_clock_ns, frame] {
          arrive(from, to, deadline_clock_ns, frame);
        });
      } else {
        arrive(from, to, deadline_clock_ns, frame);
      }
    });
  }
}

void SimulatedNetwork::arrive(NodeId from, NodeId to, std::int64_t deadline_clock_ns,
                              const Bytes& frame) {
  if (!host(to).is_up) {
    ++counts_.dropped;
    refuse(from, to);
    return;
  }
  if (host(from).is_up && clock_ns(from) > deadline_clock_ns) {
    ++counts_.expired;
    return;
  }
  if (keeps_schedule_ || from != to) {
    const auto bytes = std::string_view(reinterpret_cast<const char*>(frame.data()),
                                        std::min(frame.size(), kFrameHeadBytes));
    fingerprint_ =
        (fingerprint_ ^ fnv1a(bytes) ^ static_cast<std::uint64_t>(now_ns_)) * 0x9e3779b97f4a7c15ULL;
  }
  if (keeps_schedule_) {
    std::uint16_t type = 0;
    std::copy_n(frame.begin() + 6, 2, reinterpret_cast<std::byte*>(&type));
    char line[96];
    std::snprintf(line, sizeof line, "%u -> %u type %04x, %zu bytes", raw(from), raw(to), type,
                  frame.size());
    note(line);
  }
  transports_[raw(to) - 1]->deliver(frame);
}

void SimulatedNetwork::refuse(NodeId from, NodeId to) {
  if (is_cut(to, from)) return;
  const auto spread = static_cast<std::uint32_t>(kResetMaxNs - kResetMinNs);
  push(now_ns_ + kResetMinNs + random_.below(spread), from,
       [this, from, to] { transports_[raw(from) - 1]->tell_down(to); });
}

void SimulatedNetwork::cut(NodeId from, NodeId to) {
  cuts_.insert({from, to});
  note("cut " + std::to_string(raw(from)) + " -> " + std::to_string(raw(to)));
}

void SimulatedNetwork::heal(NodeId from, NodeId to) {
  cuts_.erase({from, to});
  note("healed " + std::to_string(raw(from)) + " -> " + std::to_string(raw(to)));
}

void SimulatedNetwork::heal_all() {
  cuts_.clear();
  note("healed all");
}

void SimulatedNetwork::set_lives(std::function<void(NodeId)> on_crash,
                                 std::function<void(NodeId)> on_restart) {
  on_crash_ = std::move(on_crash);
  on_restart_ = std::move(on_restart);
}

void SimulatedNetwork::crash(NodeId node) {
  Host& of = host(node);
  if (!of.is_up) return;
  note("crash of " + std::to_string(raw(node)));
  if (on_crash_) on_crash_(node);
  of.is_up = false;
  of.is_paused = false;
  of.held.clear();
  transports_[raw(node) - 1]->forget();
}

void SimulatedNetwork::restart(NodeId node) {
  Host& of = host(node);
  if (of.is_up) return;
  of.is_up = true;
  ++of.life;
  // The machine has booted: its monotonic clock begins anew.
  of.base_clock_ns = kSecond + random_.below(60'000) * kMillisecond;
  of.base_time_ns = now_ns_;
  note("restart of " + std::to_string(raw(node)));
  if (on_restart_) on_restart_(node);
}

void SimulatedNetwork::pause(NodeId node) {
  if (!host(node).is_up || host(node).is_paused) return;
  host(node).is_paused = true;
  note("pause of " + std::to_string(raw(node)));
}

void SimulatedNetwork::resume(NodeId node) {
  Host& of = host(node);
  if (!of.is_up || !of.is_paused) return;
  of.is_paused = false;
  note("resumption of " + std::to_string(raw(node)));
  std::vector<std::function<void()>> held = std::move(of.held);
  of.held.clear();
  for (std::function<void()>& call : held) push(now_ns_, node, std::move(call));
}

void SimulatedNetwork::note(const std::string& what) {
  fingerprint_ =
      (fingerprint_ ^ fnv1a(what) ^ static_cast<std::uint64_t>(now_ns_)) * 0x9e3779b97f4a7c15ULL;
  if (!keeps_schedule_) return;
  char time[32];
  std::snprintf(time, sizeof time, "%12.6f  ", static_cast<double>(now_ns_) / kSecond);
  schedule_.push_back(time + what);
}

}  // namespace cairn::cluster
