// SPDX-License-Identifier: Apache-2.0
// Clients killed with SIGKILL at random instants, over and over, on tiers so small that blocks are
// evicted, flushed and read again all the time.
//
// A ledger (cell_ledger.h) judges the bytes written, and the backing store after the drain.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "multiprocess/cell_ledger.h"
#include "multiprocess/node_process.h"
#include "multiprocess/test_client.h"
#include "service/attachment/sweep.h"

namespace cairn::testing {
namespace {

unsigned deaths_wanted() {
  const char* text = std::getenv("CAIRN_DEATHS");
  if (text != nullptr) return static_cast<unsigned>(std::atoi(text));
#if defined(CAIRN_TSAN) || defined(CAIRN_ASAN)
  return 150;
#else
  return 1500;
#endif
}

// An instrumented client takes longer to get to work.
unsigned life_us_max() {
#if defined(CAIRN_TSAN) || defined(CAIRN_ASAN)
  return 60'000;
#else
  return 8000;
#endif
}

// Writes its own file and reads all, until it is killed.
void work(Ledger& ledger, const NodeProcess& node, TestClient& client, unsigned own,
          unsigned thread, unsigned seed) {
  Actor actor = client.make_actor(thread);
  std::mt19937 random(seed);
  for (;;) {
    OpenFile mine(client, actor, path_of(node, own), O_RDWR | O_CREAT);
    OpenFile other(client, actor, path_of(node, random() % kFiles), O_RDONLY | O_CREAT);
    for (int step = 0; step < 60; ++step) {
      const unsigned cell = random() % kCells;
      if (cell % 2 == thread) write_cell(ledger, mine, own, cell);
      read_cell(ledger, mine, own, random() % kCells);
      if (step % 20 == 19 && random() % 4 == 0) (void)mine.sync();
      if (!other.is_open()) continue;
      const auto number = static_cast<unsigned>(random() % kCells);
      std::vector<std::uint64_t> words(kCellWords);
      (void)other.read(number * kCellBytes, words.data(), kCellBytes);
    }
  }
}

[[noreturn]] void client_process(Ledger& ledger, const NodeProcess& node, unsigned own,
                                 unsigned seed) {
  auto* client = new TestClient;  // never destroyed: the process ends by SIGKILL
  if (!client->attach(node.client_socket())) {
    ledger.attach_failures.fetch_add(1);
    ::_exit(1);
  }
  std::thread second([&] { work(ledger, node, *client, own, 1, seed + 1); });
  work(ledger, node, *client, own, 0, seed);
  second.join();
  ::_exit(0);
}

class Deaths : public ::testing::TestWithParam<std::uint64_t> {};

void expect_store_in_order(const Ledger& ledger, const NodeProcess& node) {
  for (unsigned file = 0; file < kFiles; ++file) {
    std::ifstream stream(path_of(node, file), std::ios::binary);
    for (unsigned cell = 0; cell < kCells; ++cell) {
      std::vector<std::uint64_t> words(kCellWords);
      stream.clear();
      stream.seekg(static_cast<std::streamoff>(cell * kCellBytes));
      stream.read(reinterpret_cast<char*>(words.data()), kCellBytes);
      const Cell& entry = ledger.cells[file][cell];
      EXPECT_TRUE(is_in_order(words, kCellWords, entry.written.load(), entry.intended.load()))
          << "file " << file << " cell " << cell << ": " << words.front() << ".." << words.back()
          << ", written " << entry.written.load() << ", intended " << entry.intended.load();
    }
  }
}

// Looks into the arena as another client.
void expect_nothing_leaked(const NodeProcess& node) {
  TestClient client;
  ASSERT_TRUE(client.attach(node.client_socket())) << client.refusal();
  const NodeMemory& memory = client.memory();
  EXPECT_EQ(node::count_dead_locks(memory), 0u);
  std::uint32_t taken_buckets = 0;
  std::uint32_t resident = 0;
  for (unsigned tier = 0; tier < memory.tier_count(); ++tier) {
    const BucketPool& pool = memory.pool(static_cast<TierId>(tier));
    EXPECT_EQ(pool.leased_slabs(), 0u) << "tier " << tier;
    EXPECT_EQ(pool.free_slabs(), pool.count_free_slabs()) << "tier " << tier;
    std::array<std::uint32_t, kAccountsMax> used{};
    pool.count_used_slabs(used);
    for (unsigned account = 0; account < kAccountsMax; ++account)
      EXPECT_EQ(pool.accounts().used(static_cast<AccountId>(account)), used[account])
          << "tier " << tier << ", account " << account;
    pool.for_each_bucket([&](BucketIndex bucket) {
      if (!pool.is_taken(bucket)) return;
      ++taken_buckets;
      const BlockDescriptor& block = memory.block(bucket);
      if (memory.directory().find(block.object_index(), block.block_number()) == bucket) ++resident;
    });
  }
  EXPECT_EQ(taken_buckets, resident) << "buckets that no block is in";
  std::uint32_t blocks = 0;
  for (std::uint32_t index = 1; index < memory.objects().capacity(); ++index) {
    const Object& object = memory.objects().at(static_cast<ObjectIndex>(index));
    if (!object.has(kObjectLive)) continue;
    blocks += object.blocks.load();
    EXPECT_EQ(object.opens.load(), 0u) << "object " << index;
    EXPECT_EQ(object.dirty_blocks.load(), 0u) << "object " << index;
    EXPECT_EQ(object.through.load(), 0u) << "object " << index;
  }
  EXPECT_EQ(blocks, resident);
  EXPECT_EQ(memory.flusher_board().dirty_bytes.load(), 0u);
  for (std::uint32_t index = 1; index < memory.descriptions().hold_capacity(); ++index) {
    ASSERT_EQ(memory.descriptions().view(static_cast<HoldIndex>(index)).kind, HoldKind::kFree)
        << index;
  }
}

TEST_P(Deaths, LoseNothingAndLeakNothing) {
  NodeOptions options;
  options.ram_bytes = 2 << 20;  // 32 blocks for 4.8 MB of files
  options.file_tier_bytes = GetParam();
  options.clients_max = 16;
  NodeProcess node{options};
  ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
  Ledger* ledger = make_ledger();
  ASSERT_NE(ledger, nullptr);
  const unsigned seed = static_cast<unsigned>(::time(nullptr));
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  std::vector<pid_t> writers(kFiles, -1);
  for (unsigned death = 0; death < deaths_wanted(); ++death) {
    const unsigned own = random() % kFiles;
    if (writers[own] > 0) {
      ::kill(writers[own], SIGKILL);
      ::waitpid(writers[own], nullptr, 0);
    }
    const unsigned child_seed = random();
    writers[own] = ::fork();
    if (writers[own] == 0) client_process(*ledger, node, own, child_seed);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % life_us_max()));
  }
  for (const pid_t writer : writers) {
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
  }
  ASSERT_TRUE(node.wait_until_reaped(0, 30)) << node.status().dump(1) << node.log();
  std::printf("%lu writes, %lu reads\n", static_cast<unsigned long>(ledger->writes.load()),
              static_cast<unsigned long>(ledger->reads.load()));
  EXPECT_EQ(ledger->violations.load(), 0u);
  EXPECT_EQ(ledger->attach_failures.load(), 0u);
  EXPECT_GT(ledger->writes.load(), 0u);
  const nlohmann::json drained = node.request({{"command", "drain"}});
  EXPECT_EQ(drained["stored"], true) << drained.dump(1) << node.log();
  expect_store_in_order(*ledger, node);
  // The last counts are set right when nobody is attached and nothing is dirty.
  const auto is_settled = [&] {
    const nlohmann::json status = node.status();
    return status["open_store_files"] == 0 && status["audit_owed"] == false;
  };
  for (int attempt = 0; attempt < 1000 && !is_settled(); ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  expect_nothing_leaked(node);
  ASSERT_TRUE(node.wait_until_reaped(1, 10));
  EXPECT_EQ(node.status()["open_store_files"], 0);
}

INSTANTIATE_TEST_SUITE_P(Tiers, Deaths, ::testing::Values(0, 3 << 20), [](const auto& member) {
  return member.param == 0 ? "MemoryOnly" : "WithFileTier";
});

}  // namespace
}  // namespace cairn::testing
