// SPDX-License-Identifier: Apache-2.0
#include "cluster/transport/testing/fault_schedule.h"

#include <array>
#include <numeric>

#include "base/check.h"

namespace cairn::cluster {

namespace {

std::int64_t up_to(RandomSource& random, std::int64_t span_ns) {
  return static_cast<std::int64_t>(random.fraction() * static_cast<double>(span_ns));
}

NodeId any_node(SimulatedNetwork& network) {
  return NodeId{1 + network.random().below(network.nodes())};
}

void crash_some(SimulatedNetwork& network, std::int64_t from, std::int64_t to) {
  const NodeId node = any_node(network);
  network.at(from, [&network, node] { network.crash(node); });
  network.at(to, [&network, node] { network.restart(node); });
}

void pause_some(SimulatedNetwork& network, std::int64_t from, std::int64_t to) {
  const NodeId node = any_node(network);
  network.at(from, [&network, node] { network.pause(node); });
  network.at(to, [&network, node] { network.resume(node); });
}

void partition(SimulatedNetwork& network, std::int64_t from, std::int64_t to) {
  const std::uint64_t side = network.random().next();
  for (std::uint32_t a = 1; a <= network.nodes(); ++a) {
    for (std::uint32_t b = 1; b <= network.nodes(); ++b) {
      if (((side >> (a % 64)) & 1) == ((side >> (b % 64)) & 1)) continue;
      network.at(from, [&network, a, b] { network.cut(NodeId{a}, NodeId{b}); });
      network.at(to, [&network, a, b] { network.heal(NodeId{a}, NodeId{b}); });
    }
  }
}

void cut_one_way(SimulatedNetwork& network, std::int64_t from, std::int64_t to) {
  const NodeId sender = any_node(network);
  const NodeId only = any_node(network);
  const bool is_all = network.random().below(2) == 0;
  for (std::uint32_t b = 1; b <= network.nodes(); ++b) {
    const NodeId receiver{b};
    if (receiver == sender || (!is_all && receiver != only)) continue;
    network.at(from, [&network, sender, receiver] { network.cut(sender, receiver); });
    network.at(to, [&network, sender, receiver] { network.heal(sender, receiver); });
  }
}

void change_clock(SimulatedNetwork& network, std::int64_t from, std::int32_t ppm_max) {
  const NodeId node = any_node(network);
  const auto width = static_cast<std::uint32_t>(2 * ppm_max + 1);
  const auto ppm = static_cast<std::int32_t>(network.random().below(width)) - ppm_max;
  network.at(from, [&network, node, ppm] { network.set_clock_rate(node, ppm); });
}

void worsen_links(SimulatedNetwork& network, std::int64_t from, std::int64_t to) {
  LinkFaults bad;
  bad.dropped = network.random().below(200);
  bad.repeated = network.random().below(200);
  bad.damaged = network.random().below(50);
  bad.late = network.random().below(200);
  bad.delay_max_ns = kMillisecond;
  network.at(from, [&network, bad] {
    network.note("links turn bad");
    network.set_faults(bad);
  });
  network.at(to, [&network] {
    network.note("links are good");
    network.set_faults({});
  });
}

void end_all(SimulatedNetwork& network) {
  network.note("all faults end");
  network.set_faults({});
  network.heal_all();
  for (std::uint32_t i = 1; i <= network.nodes(); ++i) {
    network.resume(NodeId{i});
    network.restart(NodeId{i});
    network.set_clock_rate(NodeId{i}, 0);
  }
}

}  // namespace

FaultMix all_faults() {
  return {.crashes = 1,
          .pauses = 1,
          .partitions = 1,
          .one_way_cuts = 1,
          .clock_changes = 1,
          .bad_links = 1};
}

void schedule_faults(SimulatedNetwork& network, const FaultMix& mix) {
  const std::array weights = {mix.crashes,      mix.pauses,        mix.partitions,
                              mix.one_way_cuts, mix.clock_changes, mix.bad_links};
  const std::uint32_t total = std::accumulate(weights.begin(), weights.end(), 0U);
  CAIRN_CHECK(total > 0 && mix.period_ns > 0 && mix.duration_ns > 0);
  RandomSource& random = network.random();
  for (std::int64_t from = up_to(random, mix.period_ns); from < mix.quiet_ns;
       from += 1 + up_to(random, mix.period_ns)) {
    const std::int64_t to = from + up_to(random, mix.duration_ns);
    std::uint32_t kind = 0;
    for (std::uint32_t left = random.below(total); left >= weights[kind]; left -= weights[kind++]) {
    }
    if (kind == 0) crash_some(network, from, to);
    if (kind == 1) pause_some(network, from, to);
    if (kind == 2) partition(network, from, to);
    if (kind == 3) cut_one_way(network, from, to);
    if (kind == 4) change_clock(network, from, mix.clock_ppm_max);
    if (kind == 5) worsen_links(network, from, to);
  }
  // Ends behind this time find nothing left to end.
  network.at(mix.quiet_ns, [&network] { end_all(network); });
}

}  // namespace cairn::cluster
