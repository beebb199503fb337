// SPDX-License-Identifier: Apache-2.0
// The simulated network makes the faults that a test wants, and the same again by the same seed.
#include "cluster/transport/testing/simulated_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/transport/testing/fault_schedule.h"

namespace cairn::cluster {
namespace {

constexpr NodeId kOne{1};
constexpr NodeId kTwo{2};

// Counts numbered messages as they arrive.
class Numbers final : public MessageHandler {
 public:
  void on_message(const Message& message) override {
    ByteReader reader(message.payload);
    heard.push_back(reader.take<std::uint32_t>());
  }
  void on_peer_down(NodeId /*peer*/) override { ++errors; }
  std::vector<std::uint32_t> heard;
  int errors = 0;
};

void send_number(SimulatedNetwork& network, NodeId from, NodeId to, std::uint32_t number) {
  ByteWriter writer;
  writer.put(number);
  ASSERT_TRUE(network.transport(from)
                  .send(to, MessageType{1}, {}, {writer.bytes(), {}},
                        network.clock_ns(from) + 100 * kSecond)
                  .is_ok());
}

std::vector<std::uint32_t> heard_of_a_thousand(const LinkFaults& faults, NetworkCounts& counts) {
  SimulatedNetwork network(2, 11);
  Numbers numbers;
  network.transport(kTwo).set_handler(&numbers);
  network.set_faults(faults);
  for (std::uint32_t i = 0; i < 1000; ++i) send_number(network, kOne, kTwo, i);
  network.run_until(kSecond);
  counts = network.counts();
  return numbers.heard;
}

TEST(SimulatedNetwork, DropsRepeatsDamagesAndReorders) {
  NetworkCounts counts;
  EXPECT_EQ(heard_of_a_thousand({}, counts).size(), 1000U);
  EXPECT_EQ(counts.sent, 1000U);
  const auto fewer = heard_of_a_thousand({.dropped = 300}, counts);
  EXPECT_EQ(fewer.size() + counts.dropped, 1000U);
  EXPECT_NEAR(static_cast<double>(fewer.size()), 700, 60);
  const auto more = heard_of_a_thousand({.repeated = 300}, counts);
  EXPECT_EQ(more.size(), 1000U + counts.repeated);
  EXPECT_NEAR(static_cast<double>(counts.repeated), 300, 60);
  const auto whole = heard_of_a_thousand({.damaged = 300}, counts);
  EXPECT_EQ(whole.size() + counts.damaged, 1000U);
  EXPECT_GT(counts.damaged, 200U);
  const auto mixed = heard_of_a_thousand({.late = 300}, counts);
  EXPECT_EQ(mixed.size(), 1000U);
  EXPECT_FALSE(std::is_sorted(mixed.begin(), mixed.end()));
}

TEST(SimulatedNetwork, CutsOneDirection) {
  SimulatedNetwork network(2, 1);
  Numbers first;
  Numbers second;
  network.transport(kOne).set_handler(&first);
  network.transport(kTwo).set_handler(&second);
  network.cut(kOne, kTwo);
  send_number(network, kOne, kTwo, 1);
  send_number(network, kTwo, kOne, 2);
  network.run_until(kSecond);
  EXPECT_TRUE(second.heard.empty());
  EXPECT_EQ(first.heard, std::vector<std::uint32_t>{2});
  EXPECT_EQ(first.errors, 0) << "a cut is silent";
  network.heal(kOne, kTwo);
  send_number(network, kOne, kTwo, 3);
  network.run_until(2 * kSecond);
  EXPECT_EQ(second.heard, std::vector<std::uint32_t>{3});
}

TEST(SimulatedNetwork, APausedHostHearsEverythingLater) {
  SimulatedNetwork network(2, 1);
  Numbers numbers;
  network.transport(kTwo).set_handler(&numbers);
  bool has_fired = false;
  network.call_at(kTwo, network.clock_ns(kTwo) + kSecond, [&] { has_fired = true; });
  network.pause(kTwo);
  send_number(network, kOne, kTwo, 1);
  network.run_until(2 * kSecond);
  EXPECT_TRUE(numbers.heard.empty());
  EXPECT_FALSE(has_fired);
  network.resume(kTwo);
  network.run_until(3 * kSecond);
  EXPECT_EQ(numbers.heard, std::vector<std::uint32_t>{1});
  EXPECT_TRUE(has_fired);
}

TEST(SimulatedNetwork, ACrashEndsTimersAndARestartBeginsAnew) {
  SimulatedNetwork network(2, 1);
  std::vector<std::string> lives;
  network.set_lives([&](NodeId) { lives.emplace_back("crash"); },
                    [&](NodeId) { lives.emplace_back("restart"); });
  bool has_fired = false;
  network.call_at(kTwo, network.clock_ns(kTwo) + kSecond, [&] { has_fired = true; });
  network.crash(kTwo);
  network.restart(kTwo);
  network.run_until(5 * kSecond);
  EXPECT_FALSE(has_fired);
  EXPECT_EQ(lives, (std::vector<std::string>{"crash", "restart"}));
}

TEST(SimulatedNetwork, AClockRunsAtItsRateAndNeverBack) {
  SimulatedNetwork network(2, 1);
  const std::int64_t begin = network.clock_ns(kTwo);
  network.set_clock_rate(kTwo, 100'000);
  network.run_until(10 * kSecond);
  EXPECT_EQ(network.clock_ns(kTwo) - begin, 11 * kSecond);
  network.set_clock_rate(kTwo, -100'000);
  EXPECT_EQ(network.clock_ns(kTwo) - begin, 11 * kSecond);
  std::int64_t fired_at = 0;
  network.call_at(kTwo, network.clock_ns(kTwo) + 9 * kSecond, [&] { fired_at = network.now_ns(); });
  network.run_until(30 * kSecond);
  EXPECT_NEAR(static_cast<double>(fired_at), 20e9, 10);
}

// Two hosts bounce a number while everything goes wrong.
class Bouncer final : public MessageHandler {
 public:
  Bouncer(SimulatedNetwork& network, NodeId self) : network_(network), self_(self) {
    network.transport(self).set_handler(this);
  }
  void on_message(const Message& message) override {
    ByteReader reader(message.payload);
    send_number(network_, self_, message.from.node, reader.take<std::uint32_t>() + 1);
  }
  void on_peer_down(NodeId /*peer*/) override {}

 private:
  SimulatedNetwork& network_;
  const NodeId self_;
};

std::vector<std::string> run_of(std::uint64_t seed, std::uint64_t& fingerprint) {
  SimulatedNetwork network(3, seed);
  network.keep_schedule();
  std::vector<std::unique_ptr<Bouncer>> bouncers(4);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    bouncers[i] = std::make_unique<Bouncer>(network, NodeId{i});
  }
  network.set_lives(
      [&](NodeId node) { bouncers[raw(node)].reset(); },
      [&](NodeId node) { bouncers[raw(node)] = std::make_unique<Bouncer>(network, node); });
  FaultMix mix = all_faults();
  mix.period_ns = 20 * kMillisecond;
  mix.duration_ns = 20 * kMillisecond;
  mix.quiet_ns = 200 * kMillisecond;
  schedule_faults(network, mix);
  for (int i = 0; i < 100; ++i) {
    network.at(i * 2 * kMillisecond, [&network] {
      if (network.is_up(kOne) && !network.is_paused(kOne)) send_number(network, kOne, kTwo, 0);
    });
  }
  network.run_until(50 * kMillisecond);
  fingerprint = network.fingerprint();
  return network.schedule();
}

TEST(SimulatedNetwork, ASeedReplaysExactly) {
  std::uint64_t first = 0;
  std::uint64_t again = 0;
  std::uint64_t other = 0;
  const std::vector<std::string> schedule = run_of(5, first);
  EXPECT_GT(schedule.size(), 1000U);
  EXPECT_EQ(schedule, run_of(5, again));
  EXPECT_EQ(first, again);
  EXPECT_NE(schedule, run_of(6, other));
  EXPECT_NE(first, other);
}

}  // namespace
}  // namespace cairn::cluster
