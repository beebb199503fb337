// SPDX-License-Identifier: Apache-2.0
// The node service killed with SIGKILL while programs are at work: they go on with what is in the
// tiers, and wait for nothing that it held.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "memory/catalog/testing/block_probe.h"
#include "multiprocess/cell_ledger.h"
#include "multiprocess/node_process.h"
#include "multiprocess/test_client.h"
#include "service/recovery/takeover.h"

namespace cairn::testing {
namespace {

// A process that waits longer than that waits for good: the alarm kills it.
#if defined(CAIRN_TSAN) || defined(CAIRN_ASAN)
constexpr unsigned kLongSeconds = 60;
constexpr unsigned kServiceDeaths = 6;
#else
constexpr unsigned kLongSeconds = 20;
constexpr unsigned kServiceDeaths = 25;
#endif

// A process that says when it is ready, and goes on when the test says so.
class Child {
 public:
  using Body = std::function<int(const Child& self)>;
  // `body` returns the exit status.
  explicit Child(const Body& body) {
    EXPECT_EQ(::pipe(ready_), 0);
    EXPECT_EQ(::pipe(go_), 0);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::alarm(kLongSeconds);
    ::_exit(body(*this));
  }
  ~Child() {
    kill();
    for (const int fd : {ready_[0], ready_[1], go_[0], go_[1]}) {
      if (fd >= 0) ::close(fd);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // In the process.
  void say_ready() const { (void)!::write(ready_[1], "r", 1); }
  void say_ready_and_wait() const {
    say_ready();
    char letter = 0;
    (void)!::read(go_[0], &letter, 1);
  }
  // In the test.
  bool is_ready() {
    ::close(std::exchange(ready_[1], -1));
    char letter = 0;
    return ::read(ready_[0], &letter, 1) == 1;
  }
  void go_on() const { (void)!::write(go_[1], "g", 1); }
  // 128 and more: the signal that ended it, which is SIGALRM when it has waited for good.
  int wait() {
    if (pid_ <= 0) return -1;
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  void kill() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    (void)wait();
  }

 private:
  pid_t pid_ = -1;
  int ready_[2] = {-1, -1};
  int go_[2] = {-1, -1};
};

NodeOptions small_node() {
  NodeOptions options;
  options.ram_bytes = 2 << 20;
  options.file_tier_bytes = 3 << 20;
  options.clients_max = 16;
  return options;
}

void kill_service(const NodeProcess& node) { node.signal(SIGKILL); }

struct OneFile {
  explicit OneFile(const NodeProcess& node) {
    is_attached = client.attach(node.client_socket());
    if (!is_attached) return;
    actor = client.make_actor(0);
    file = std::make_unique<OpenFile>(client, actor, path_of(node, 0), O_RDWR | O_CREAT);
  }
  bool write(char letter) {
    const std::string bytes(2 * kBlockBytes, letter);
    return file->write(0, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  }
  bool reads(char letter) {
    std::string bytes(2 * kBlockBytes, '?');
    return file->read(0, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
           bytes == std::string(bytes.size(), letter);
  }
  BlockDescriptor& block(std::uint32_t number) {
    const NodeMemory& memory = client.memory();
    return memory.block(memory.directory().find(file->object(), static_cast<BlockNumber>(number)));
  }
  Object& object() { return client.memory().objects().at(file->object()); }
  Owner service() const { return client.memory().owners().current(ClientSlot::kOfService); }

  TestClient client;
  bool is_attached = false;
  Actor actor;
  std::unique_ptr<OpenFile> file;
};

TEST(ServiceDeath, WhatTheServiceHeldIsTakenOver) {
  NodeProcess node{small_node()};
  ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
  Child child([&](const Child& self) {
    OneFile one(node);
    if (!one.is_attached || !one.write('a') || one.file->sync() != 0) return 1;
    // The first block is on its way to another tier, the second is being fetched or changed, and
    // the times of the file are being settled.
    BlockProbe(one.block(0)).claim_as(one.service());
    BlockProbe(one.block(1)).lock_as(one.service());
    (void)one.object().lock.try_lock(one.service());
    self.say_ready_and_wait();
    if (!one.reads('a')) return 2;
    if (!one.write('b') || !one.reads('b')) return 3;
    return one.file->sync() == 0 ? 0 : 4;
  });
  ASSERT_TRUE(child.is_ready());
  kill_service(node);
  child.go_on();
  EXPECT_EQ(child.wait(), 0);
}

TEST(ServiceDeath, WhoDiesAfterItHoldsNothingForEver) {
  NodeProcess node{small_node()};
  ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
  Child reader([&](const Child& self) {
    OneFile one(node);
    if (!one.is_attached || !one.write('a')) return 1;
    self.say_ready_and_wait();
    return one.reads('a') ? 0 : 2;
  });
  ASSERT_TRUE(reader.is_ready());
  Child other([&](const Child& self) {
    OneFile one(node);
    if (!one.is_attached || !one.reads('a')) return 1;
    BlockProbe(one.block(0)).lock_as(one.client.self());
    self.say_ready_and_wait();
    return 0;
  });
  ASSERT_TRUE(other.is_ready());
  kill_service(node);
  ASSERT_EQ(node.wait_for_exit(kLongSeconds), 128 + SIGKILL);
  other.kill();
  reader.go_on();
  EXPECT_EQ(reader.wait(), 0);
}

TEST(ServiceDeath, WhoLivesKeepsItsLocks) {
  constexpr auto kManySleeps = std::chrono::milliseconds(300);
  NodeProcess node{small_node()};
  ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
  Child waiter([&](const Child& self) {
    OneFile one(node);
    if (!one.is_attached || !one.write('a')) return 1;
    self.say_ready_and_wait();
    return one.reads('a') ? 0 : 2;
  });
  ASSERT_TRUE(waiter.is_ready());
  Child holder([&](const Child& self) {
    OneFile one(node);
    if (!one.is_attached || !one.reads('a')) return 1;
    const BlockDescriptor& block = one.block(0);
    const NodeMemory& memory = one.client.memory();
    LockedBlock locked(one.actor.worker(), memory.catalog().index_of(block));
    self.say_ready_and_wait();
    std::this_thread::sleep_for(kManySleeps);
    const Owner still = BlockDescriptor::owner_in(block.word());
    if (still != one.client.self()) return 2;
    locked.set_changed();
    locked.unlock();
    return 0;
  });
  ASSERT_TRUE(holder.is_ready());
  kill_service(node);
  ASSERT_EQ(node.wait_for_exit(kLongSeconds), 128 + SIGKILL);
  waiter.go_on();
  holder.go_on();
  EXPECT_EQ(holder.wait(), 0);
  EXPECT_EQ(waiter.wait(), 0);
}

// The test is the keeper, and what the next service does first.
TEST(ServiceDeath, WhereAnotherServiceFollowsEverybodyWaitsForIt) {
  constexpr auto kManySleeps = std::chrono::milliseconds(300);
  NodeProcess node{small_node()};
  ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
  TestClient next;
  ASSERT_TRUE(next.attach(node.client_socket()));
  next.memory().service_board().keeper.store(::getpid());
  Child child([&](const Child& self) {
    OneFile one(node);
    if (!one.is_attached || !one.write('a')) return 1;
    const Owner dead = one.service();
    BlockProbe(one.block(0)).lock_as(dead);
    BlockProbe(one.block(1)).claim_as(dead);
    (void)one.object().lock.try_lock(dead);
    self.say_ready_and_wait();
    if (one.client.is_gone(dead)) return 2;
    if (!one.write('b') || !one.reads('b')) return 3;
    if (one.client.memory().owners().is_alive(dead)) return 4;
    if (!one.client.memory().is_served()) return 5;
    return one.file->sync() == 0 ? 0 : 6;
  });
  ASSERT_TRUE(child.is_ready());
  kill_service(node);
  ASSERT_EQ(node.wait_for_exit(kLongSeconds), 128 + SIGKILL);
  child.go_on();
  std::this_thread::sleep_for(kManySleeps);
  EXPECT_TRUE(next.memory().is_served()) << "nobody has given the node up";
  const auto taken = node::take_over(const_cast<NodeMemory&>(next.memory()));
  ASSERT_TRUE(taken.is_ok()) << taken.status().message();
  EXPECT_EQ(child.wait(), 0);
}

// Writes and reads its own file until the service is dead, and then for a while.
int work_on(Ledger& ledger, const NodeProcess& node, unsigned own, unsigned seed,
            const Child& self) {
  TestClient client;
  if (!client.attach(node.client_socket())) return 1;
  Actor actor = client.make_actor(0);
  std::mt19937 random(seed);
  OpenFile file(client, actor, path_of(node, own), O_RDWR | O_CREAT);
  if (!file.is_open()) return 2;
  for (unsigned cell = 0; cell < kCells; ++cell) write_cell(ledger, file, own, cell);
  self.say_ready();
  unsigned left = 4 * kCells;
  while (left > 0) {
    if (client.is_gone(client.memory().owners().current(ClientSlot::kOfService))) --left;
    const unsigned cell = random() % kCells;
    if (random() % 2 == 0) write_cell(ledger, file, own, cell);
    read_cell(ledger, file, own, random() % kCells);
    if (random() % 256 == 0 && file.sync() != 0) return 3;
  }
  return 0;
}

TEST(ServiceDeath, ProgramsGoOnWheneverItDies) {
  const auto seed = static_cast<unsigned>(::time(nullptr));
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (unsigned death = 0; death < kServiceDeaths; ++death) {
    NodeOptions options = small_node();
    options.flush_delay_ms = 1;  // always something to flush and, with so little room, to move
    NodeProcess node{options};
    ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
    Ledger* ledger = make_ledger();
    ASSERT_NE(ledger, nullptr);
    std::vector<std::unique_ptr<Child>> children;
    for (unsigned own = 0; own < kFiles; ++own) {
      const unsigned child_seed = random();
      children.push_back(std::make_unique<Child>([&, own, child_seed](const Child& self) {
        return work_on(*ledger, node, own, child_seed, self);
      }));
    }
    for (const auto& child : children) ASSERT_TRUE(child->is_ready());
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
    kill_service(node);
    for (const auto& child : children) EXPECT_EQ(child->wait(), 0) << "death " << death;
    EXPECT_EQ(ledger->violations.load(), 0U) << "death " << death;
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace cairn::testing
