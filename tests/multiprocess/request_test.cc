// SPDX-License-Identifier: Apache-2.0
// Questions in the request ring against a real service: without a connection, with clients that
// are killed in the middle of them, with a service that dies or ends while they wait, and with
// rubbish in the slots.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "frontends/protocol/question.h"
#include "memory/tiers/memory_map.h"
#include "multiprocess/node_process.h"
#include "multiprocess/test_client.h"

namespace cairn::testing {
namespace {

#if defined(CAIRN_TSAN) || defined(CAIRN_ASAN)
constexpr unsigned kDeaths = 20;
constexpr unsigned kSeconds = 60;
#else
constexpr unsigned kDeaths = 150;
constexpr unsigned kSeconds = 20;
#endif

unsigned chosen_seed() {
  const char* text = std::getenv("CAIRN_SEED");
  const auto seed = text != nullptr ? static_cast<unsigned>(std::atoi(text))
                                    : static_cast<unsigned>(::time(nullptr));
  std::printf("seed %u\n", seed);
  return seed;
}

// An attached process with one file that is dirty.
struct Asking {
  explicit Asking(const NodeProcess& node, const std::string& name = "file") {
    is_ready = client.attach(node.client_socket());
    if (!is_ready) return;
    actor = client.make_actor(0);
    path = node.data_directory() + "/" + name;
    file = std::make_unique<OpenFile>(client, actor, path, O_RDWR | O_CREAT);
    is_ready = file->is_open() && write('a');
  }
  bool write(char letter) {
    const std::string bytes(3 * kPageBytes, letter);
    return file->write(0, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  }
  int flush() { return client.request_flush(file->object(), false); }
  bool is_stored(char letter) const {
    std::string bytes(3 * kPageBytes, '?');
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t length = ::pread(fd, bytes.data(), bytes.size(), 0);
    ::close(fd);
    return length == static_cast<ssize_t>(bytes.size()) &&
           bytes == std::string(bytes.size(), letter);
  }
  const RequestRing& ring() const { return client.memory().requests(); }

  TestClient client;
  bool is_ready = false;
  Actor actor;
  std::string path;
  std::unique_ptr<OpenFile> file;
};

NodeOptions slow_to_flush() {
  NodeOptions options;
  options.flush_delay_ms = 60'000;
  return options;
}

pid_t start(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::alarm(kSeconds);
  ::_exit(body());
}

// 128 and more: the signal that ended it, which is SIGALRM when it has waited for good.
int end_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Requests, AFlushMakesNoConnection) {
  const NodeProcess node{slow_to_flush()};
  ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
  Asking asking(node);
  ASSERT_TRUE(asking.is_ready);
  EXPECT_FALSE(asking.is_stored('a'));
  asking.client.forget_socket();
  EXPECT_EQ(asking.flush(), 0);
  EXPECT_TRUE(asking.is_stored('a'));
  ASSERT_TRUE(asking.write('b'));
  EXPECT_EQ(asking.client.request_flush(asking.file->object(), true), 0);
  EXPECT_TRUE(asking.is_stored('b'));
  EXPECT_EQ(asking.client.meet_unserved(asking.file->object()), -EINVAL) << "the file is not new";
  EXPECT_EQ(asking.ring().used_slots(), 0U);
}

TEST(Requests, AFullRingIsNoReasonNotToBeAnswered) {
  ::setenv("CAIRN_TEST_CAPACITIES", "requests=1", 1);
  const NodeProcess node{slow_to_flush()};
  ::unsetenv("CAIRN_TEST_CAPACITIES");
  ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
  Asking asking(node);
  ASSERT_TRUE(asking.is_ready);
  ASSERT_EQ(asking.ring().slots(), 1U);
  std::atomic<unsigned> failed{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        if (asking.flush() != 0) ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 0U);
  EXPECT_EQ(asking.ring().used_slots(), 0U);
}

TEST(Requests, ClientsMayDieInTheMiddleOfThem) {
  std::mt19937 random(chosen_seed());
  const NodeProcess node{slow_to_flush()};
  ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
  for (unsigned death = 0; death < kDeaths; ++death) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = start([&] {
      Asking asking(node, "file-" + std::to_string(death % 4));
      if (!asking.is_ready) return 1;
      std::vector<std::thread> threads;
      for (int thread = 0; thread < 2; ++thread) {
        threads.emplace_back([&] {
          for (;;) (void)asking.flush();
        });
      }
      (void)!::write(ready[1], "r", 1);
      for (;;) (void)asking.write('b');
    });
    ::close(ready[1]);
    char letter = 0;
    ASSERT_EQ(::read(ready[0], &letter, 1), 1) << "death " << death;
    ::close(ready[0]);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    ::kill(child, SIGKILL);
    ASSERT_EQ(end_of(child), 128 + SIGKILL) << "death " << death;
  }
  ASSERT_TRUE(node.wait_until_reaped(0, kSeconds));
  Asking asking(node);
  ASSERT_TRUE(asking.is_ready);
  // The service may be at work on what a dead client has asked, and frees the slot with the answer.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (asking.ring().used_slots() != 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(asking.ring().used_slots(), 0U) << "what the dead have asked is nobody's any more";
  EXPECT_EQ(asking.flush(), 0);
}

TEST(Requests, WhoWaitsLearnsThatTheServiceIsDead) {
  for (int round = 0; round < 5; ++round) {
    NodeProcess node{slow_to_flush()};
    ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
    std::vector<pid_t> children;
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    for (int number = 0; number < 3; ++number) {
      children.push_back(start([&] {
        Asking asking(node, "file-" + std::to_string(number));
        if (!asking.is_ready || asking.flush() != 0) return 1;
        (void)!::write(ready[1], "r", 1);
        for (;;) {
          const int error = asking.flush();
          if (error == 0) continue;
          return error == -EIO ? 0 : 2;
        }
      }));
    }
    ::close(ready[1]);
    char letter = 0;
    for (int number = 0; number < 3; ++number) ASSERT_EQ(::read(ready[0], &letter, 1), 1);
    ::close(ready[0]);
    // Stopped, it leaves questions in every stage.
    node.signal(SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    node.signal(SIGKILL);
    for (const pid_t child : children) EXPECT_EQ(end_of(child), 0) << "round " << round;
  }
}

TEST(Requests, AServiceThatEndsLeavesNobodyWaiting) {
  for (int round = 0; round < 5; ++round) {
    NodeProcess node{slow_to_flush()};
    ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = start([&] {
      Asking asking(node);
      if (!asking.is_ready || asking.flush() != 0) return 1;
      (void)!::write(ready[1], "r", 1);
      for (;;) {
        const int error = asking.flush();
        if (error != 0) return error == -EIO ? 0 : 2;
      }
    });
    ::close(ready[1]);
    char letter = 0;
    ASSERT_EQ(::read(ready[0], &letter, 1), 1);
    ::close(ready[0]);
    EXPECT_EQ(node.shut_down(), 0);
    EXPECT_EQ(end_of(child), 0) << "round " << round;
  }
}

TEST(Requests, RubbishIsAnsweredWithAnError) {
  std::mt19937_64 random(chosen_seed());
  NodeProcess node{slow_to_flush()};
  ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
  Asking asking(node);
  ASSERT_TRUE(asking.is_ready);
  const RequestRing& ring = asking.ring();
  for (int round = 0; round < 2000; ++round) {
    // Each time another object, with a type that asks about one or with any; no question to sync
    // among them, which would be answered well.
    const std::uint64_t type = random() % 2 == 0
                                   ? static_cast<std::uint64_t>(protocol::Type::kFlush)
                                   : random() % 0x8000 | 0x4000;
    const QuestionWords words = {(random() | 0x8000'0000) << 32 | type, random()};
    const auto place = ring.ask(asking.client.self(), words);
    ASSERT_TRUE(place);
    std::int32_t result = 0;
    ASSERT_EQ(ring.await(*place, asking.client.memory().owners(), 1000, &result),
              RequestRing::Waited::kAnswered);
    ASSERT_EQ(result, -EIO);
  }
  EXPECT_TRUE(node.is_running());
  EXPECT_EQ(asking.flush(), 0);
}

// A client that asks again and again in the slot that is being answered gets no queue of its own.
TEST(Requests, AFloodInOneSlotKeepsNobodyWaiting) {
  NodeProcess node{slow_to_flush()};
  ASSERT_EQ(node.ready_line(), "ready\n") << node.log();
  Asking asking(node);
  ASSERT_TRUE(asking.is_ready);
  const NodeMemory& memory = asking.client.memory();
  const MemoryMap map(memory.shape());
  auto* table = map.find<RequestRing::Table>(memory.control().base(), Table::kRequests);
  protocol::Question question;
  question.type = protocol::Type::kFlush;
  question.object = asking.file->object();
  question.durable = true;
  const QuestionWords words = protocol::words_of(question);
  RequestRing::Slot& slot = table->slots[0];
  for (std::size_t at = 0; at < words.size(); ++at) slot.question[at].store(words[at]);
  const RequestWord asked = RequestWord().taken_by(asking.client.self()).at(RequestStage::kAsked);
  const auto began = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - began < std::chrono::seconds(2)) {
    slot.word.store(asked.bits());
    table->asked[0].fetch_or(1);
    table->bell.ring();
  }
  const auto ended = std::chrono::steady_clock::now();
  EXPECT_EQ(asking.flush(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - ended, std::chrono::seconds(3));
}

}  // namespace
}  // namespace cairn::testing
