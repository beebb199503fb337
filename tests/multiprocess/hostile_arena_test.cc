// SPDX-License-Identifier: Apache-2.0
// A client that means harm: attached as any other, it overwrites the node's memory table by table,
// with patterns that hit where it hurts (locks in living names, lengths and counts without bound,
// names of other tables' records), and stays attached to the end, while the service works for
// others. The service lives, answers, logs little, ends on command with an exit status that says
// whether all was stored, and writes to no file that only others may write.
//
// CAIRN_SEED repeats a run; CAIRN_HOSTILE_ROUNDS makes it longer.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "multiprocess/node_process.h"
#include "multiprocess/test_client.h"

namespace cairn::testing {
namespace {

using Random = std::mt19937_64;

unsigned long number_in(const char* variable, unsigned long otherwise) {
  const char* given = std::getenv(variable);
  return given != nullptr ? std::strtoul(given, nullptr, 10) : otherwise;
}

std::string content_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// What the attacker writes over a table.
enum class Pattern : unsigned {
  kRandom,       // bytes
  kOnes,         // the largest lengths, counts and numbers
  kZeros,        // as if nobody had ever worked
  kLivingOwner,  // locks, claims and holds that name a process which lives and holds nothing
  kService,      // the same in the service's own name
  kSmall,        // numbers that are in range somewhere
  kFlip,         // one bit of what stands there
  kShifted,      // another element's words
  kCount
};

class Attacker {
 public:
  Attacker(const TestClient& client, unsigned seed) : client_(client), random_(seed) {}

  // Overwrites a part of one table, or all of it.
  void strike() {
    const MemoryMap map(client_.memory().shape());
    // Not the identity, which nobody reads after the attach.
    const TableRow& row = map.rows()[1 + random_() % (map.rows().size() - 1)];
    const std::uint64_t words = row.bytes() / 8;
    if (words == 0) return;
    constexpr std::uint64_t kFew = 512;
    constexpr std::uint64_t kMany = 1 << 16;
    const std::uint64_t most = std::min(words, random_() % 4 == 0 ? kMany : kFew);
    const std::uint64_t count = 1 + random_() % most;
    const std::uint64_t first = random_() % 2 == 0 ? 0 : random_() % (words - count + 1);
    auto* const begin =
        reinterpret_cast<std::uint64_t*>(client_.memory().control().base() + row.offset) + first;
    const auto pattern = static_cast<Pattern>(random_() % static_cast<unsigned>(Pattern::kCount));
    const std::uint64_t step = random_() % 3 == 0 ? 8 : 1;  // the same word of each line, or all
    for (std::uint64_t at = 0; at < count; at += step) {
      const std::uint64_t old = __atomic_load_n(begin + at, __ATOMIC_RELAXED);
      __atomic_store_n(begin + at, word(pattern, old, begin[random_() % count]), __ATOMIC_RELAXED);
    }
  }

 private:
  std::uint64_t word(Pattern pattern, std::uint64_t old, std::uint64_t other) {
    const std::uint64_t mine = client_.self().bits();
    const std::uint64_t service = client_.memory().owners().current(ClientSlot::kOfService).bits();
    switch (pattern) {
      case Pattern::kOnes:
        return ~std::uint64_t{0};
      case Pattern::kZeros:
        return 0;
      case Pattern::kLivingOwner:
        return random_() % 2 == 0 ? mine : mine << 32 | mine;
      case Pattern::kService:
        return random_() % 2 == 0 ? service : service << 32 | service;
      case Pattern::kSmall:
        return random_() % 64 | (random_() % 64) << 32;
      case Pattern::kFlip:
        return old ^ std::uint64_t{1} << random_() % 64;
      case Pattern::kShifted:
        return other;
      default:
        return random_();
    }
  }

  const TestClient& client_;
  Random random_;
};

pid_t in_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  // What it meets there is its own affair.
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) ::signal(signal, SIG_DFL);
  body();
  ::_exit(0);
}

// Honest programs: they open, write, read, sync, truncate and close, again and again, until they
// are killed or die of what they find.
void work(const NodeProcess& node, const std::string& witness, unsigned seed) {
  TestClient client;
  if (!client.attach(node.client_socket(), seed)) return;
  Actor actor = client.make_actor(0);
  Random random(seed);
  std::vector<char> bytes(200'000, 'x');
  for (unsigned round = 0;; ++round) {
    const OpenFile reader(client, actor, witness, O_RDONLY);
    OpenFile file(
        client, actor,
        node.data_directory() + "/" + std::to_string(seed) + "-" + std::to_string(round % 5),
        O_RDWR | O_CREAT);
    if (!file.is_open()) continue;
    for (int call = 0; call < 10; ++call) {
      (void)file.write(random() % 1'000'000, bytes.data(), random() % bytes.size());
      (void)file.read(random() % 1'000'000, bytes.data(), random() % bytes.size());
    }
    if (round % 4 == 0) (void)file.sync();
  }
}

class HostileArena : public ::testing::Test {
 protected:
  static constexpr int kAnswerSeconds = 20;
  static constexpr std::uintmax_t kLogBytesMax = 4 << 20;

  void storm(unsigned seed) {
    std::printf("CAIRN_SEED=%u\n", seed);
    std::fflush(stdout);
    NodeOptions options;
    // Tables that end within a word, and within a line.
    options.ram_bytes = (4 << 20) + (7 << 16);
    options.file_tier_bytes = (2 << 20) + (5 << 16);
    NodeProcess node{options};
    ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
    // The programs may read it and never write it.
    const std::string witness = node.data_directory() + "/witness";
    const std::string text(300'000, 'w');
    std::ofstream(witness) << text;
    std::vector<pid_t> children;
    for (unsigned number = 1; number <= 2; ++number)
      children.push_back(in_child([&] { work(node, witness, seed * 10 + number); }));
    children.push_back(in_child([&] {
      TestClient client;
      if (!client.attach(node.client_socket())) ::_exit(1);
      Attacker attacker(client, seed);
      for (int strike = 0;; ++strike) {
        attacker.strike();
        if (strike % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      }
    }));
    for (int look = 0; look < 3; ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
      EXPECT_EQ(node.status_within(kAnswerSeconds)["service_pid"], node.pid()) << "seed " << seed;
      // Clients that die are swept among what is scribbled.
      if (look == 1) {
        kill_and_wait(children.front());
        children.front() = in_child([&] { work(node, witness, seed * 10 + 3); });
      }
    }
    EXPECT_TRUE(node.request({{"command", "drain"}, {"timeout_seconds", 1}}, kAnswerSeconds)
                    .contains("kind"));
    end(node, seed);
    for (const pid_t child : children) kill_and_wait(child);
    EXPECT_EQ(content_of(witness), text) << "seed " << seed;
    EXPECT_LT(node.log().size(), kLogBytesMax) << "seed " << seed;
  }

  static void kill_and_wait(pid_t child) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }

  // As `cairn down` does it, for a user who gives up after 3 s what cannot be stored.
  static void ask_to_end(const NodeProcess& node) {
    const auto ended = node.request(
        {{"command", "shutdown"}, {"drain", true}, {"timeout_seconds", 3}}, kAnswerSeconds);
    if (ended.contains("stopped") && ended["stopped"] == true) return;
    const auto given_up =
        node.request({{"command", "shutdown"}, {"discard", true}}, kAnswerSeconds);
    EXPECT_TRUE(given_up.contains("stopped") && given_up["stopped"] == true)
        << ended.dump() << given_up.dump();
  }

  // The attacker is still at work. The first signal asks for everything to be stored, the second
  // for the end.
  static void end(NodeProcess& node, unsigned seed) {
    EXPECT_TRUE(node.is_running()) << "seed " << seed << ": " << node.log();
    EXPECT_EQ(node.status_within(kAnswerSeconds)["service_pid"], node.pid())
        << "seed " << seed << ": " << node.log();
    if (seed % 2 == 0) {
      ask_to_end(node);
    } else {
      node.signal(SIGTERM);
    }
    int status = node.wait_for_exit(1);
    if (status < 0) {
      node.signal(SIGTERM);
      status = node.wait_for_exit(30);
    }
    EXPECT_TRUE(status == 0 || status == 74) << "seed " << seed << ": " << status << node.log();
  }
};

TEST_F(HostileArena, NoClientEndsHangsOrMisleadsTheService) {
#ifndef NDEBUG
  GTEST_SKIP() << "the assertions of this build are to end a service that finds what is scribbled";
#endif
  const auto first = static_cast<unsigned>(number_in("CAIRN_SEED", 1));
  const auto rounds = static_cast<unsigned>(number_in("CAIRN_HOSTILE_ROUNDS", 3));
  for (unsigned round = 0; round < rounds && !HasFailure(); ++round) storm(first + round);
}

}  // namespace
}  // namespace cairn::testing
