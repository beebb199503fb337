// SPDX-License-Identifier: Apache-2.0
// Questions in the ring, with deaths of both sides after each step that they show: real processes,
// killed with SIGKILL. CAIRN_SEED repeats a run.
#include "memory/arena/request_ring.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "memory/arena/testing/death.h"

namespace cairn {
namespace {

constexpr std::uint32_t kSlots = 4;
constexpr std::uint16_t kService = 1;
constexpr std::uint16_t kFirstClient = 2;
constexpr std::uint32_t kOwners = 16;
constexpr unsigned kLong = 400;  // sleeps
constexpr QuestionWords kWords = {21, 2};

struct SharedRing {
  RequestRing::Table table{};
  std::array<std::atomic<std::uint32_t>, kOwners> generations{};
  std::atomic<std::uint32_t> progress{0};
};

using testing::Death;

// The service is a process that the test knows.
class ProcessWatch final : public OwnerWatch {
 public:
  explicit ProcessWatch(pid_t service) : service_(service) {}
  bool is_gone(Owner owner) const override {
    if (owner.slot() != kService) return false;
    int status = 0;
    return ::waitpid(service_, &status, WNOHANG) == service_;
  }

 private:
  pid_t service_;
};

class RequestRingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    void* mapped = ::mmap(nullptr, sizeof(SharedRing), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    shared_ = new (mapped) SharedRing;
    owners_ = OwnerTable(shared_->generations.data(), kOwners);
    ring_ = RequestRing(&shared_->table, kSlots, kService);
  }
  void TearDown() override { ::munmap(shared_, sizeof(SharedRing)); }

  Owner client(std::uint16_t number = 0) const {
    return owners_.current(static_cast<std::uint16_t>(kFirstClient + number));
  }

  // What the service does: each question's answer is the sum of its words.
  unsigned serve() const {
    unsigned served = 0;
    ring_.take(owners_, [&](const RequestRing::Taken& taken) {
      ++served;
      ring_.answer(taken.place, sum_of(taken.question), owners_);
    });
    return served;
  }
  static std::int32_t sum_of(const QuestionWords& words) {
    return static_cast<std::int32_t>(words[0] + words[1]);
  }
  RequestRing::Waited wait_for(const RequestRing::Place& place, std::int32_t* result,
                               unsigned sleeps = kLong) const {
    return ring_.await(place, owners_, sleeps, result);
  }
  bool is_served(std::uint16_t number) const {
    const auto place = ring_.ask(client(number), kWords);
    std::int32_t result = 0;
    return place && serve() == 1 && wait_for(*place, &result) == RequestRing::Waited::kAnswered &&
           result == 23;
  }
  // A process of its own that runs `body` and is waited for. True when SIGKILL ended it.
  static bool is_killed_in(const std::function<void()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      body();
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  void declare_dead(std::uint16_t number) {
    owners_.advance(static_cast<std::uint16_t>(kFirstClient + number));
  }

  SharedRing* shared_ = nullptr;
  OwnerTable owners_;
  RequestRing ring_;
};

TEST_F(RequestRingTest, EveryThreadGetsTheAnswerToItsOwnQuestion) {
  constexpr std::uint64_t kQuestions = 2000;
  std::atomic<bool> is_over{false};
  std::atomic<unsigned> wrong{0};
  std::atomic<unsigned> full{0};
  std::thread server([&] {
    while (!is_over.load()) {
      const std::uint32_t heard = ring_.heard();
      (void)serve();
      if (!is_over.load()) ring_.sleep(heard, 1000);
    }
  });
  std::vector<std::thread> clients;
  for (std::uint16_t number = 0; number < 6; ++number) {
    clients.emplace_back([&, number] {
      for (std::uint64_t at = 0; at < kQuestions; ++at) {
        const QuestionWords words = {at, number};
        const auto place = ring_.ask(client(number), words);
        if (!place) {
          ++full;
          continue;
        }
        std::int32_t result = 0;
        const bool is_right =
            wait_for(*place, &result) == RequestRing::Waited::kAnswered && result == sum_of(words);
        if (!is_right) ++wrong;
      }
    });
  }
  for (std::thread& thread : clients) thread.join();
  is_over = true;
  ring_.ring();
  server.join();
  EXPECT_EQ(wrong.load(), 0U);
  EXPECT_EQ(ring_.used_slots(), 0U);
}

TEST_F(RequestRingTest, AFullRingSaysSoAndHasRoomAgain) {
  std::vector<RequestRing::Place> places;
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    const auto place = ring_.ask(client(), kWords);
    ASSERT_TRUE(place);
    places.push_back(*place);
  }
  EXPECT_FALSE(ring_.ask(client(1), kWords));
  EXPECT_EQ(serve(), kSlots);
  EXPECT_FALSE(ring_.ask(client(1), kWords)) << "answers that nobody has fetched fill it as well";
  std::int32_t result = 0;
  for (const auto& place : places)
    EXPECT_EQ(wait_for(place, &result), RequestRing::Waited::kAnswered);
  EXPECT_TRUE(is_served(1));
}

TEST_F(RequestRingTest, AQuestionIsAskedAsLongAsTheServiceTakes) {
  const auto place = ring_.ask(client(), kWords);
  ASSERT_TRUE(place);
  std::int32_t result = 0;
  EXPECT_EQ(wait_for(*place, &result, 1), RequestRing::Waited::kStill);
  EXPECT_EQ(serve(), 1U);
  EXPECT_EQ(wait_for(*place, &result, 0), RequestRing::Waited::kAnswered);
}

// A client that dies after any step, whether the service takes the question before the death is
// declared, after it, or after the sweep.
TEST_F(RequestRingTest, AClientMayDieAfterEveryStep) {
  enum class Order : unsigned { kTakenFirst, kDeclaredFirst, kSweptFirst, kCount };
  for (unsigned order = 0; order < static_cast<unsigned>(Order::kCount); ++order) {
    unsigned deaths = 0;
    for (unsigned step = 0;; ++step) {
      const bool is_killed = is_killed_in([&] { (void)ring_.ask(client(), kWords, Death(step)); });
      if (!is_killed) break;
      ++deaths;
      if (order == static_cast<unsigned>(Order::kTakenFirst)) (void)serve();
      declare_dead(0);
      if (order == static_cast<unsigned>(Order::kDeclaredFirst)) (void)serve();
      (void)ring_.release_dead(owners_);
      EXPECT_EQ(ring_.used_slots(), 0U) << "step " << step << ", order " << order;
      EXPECT_TRUE(is_served(1)) << "step " << step << ", order " << order;
    }
    EXPECT_GE(deaths, 6U);
    // The last one did not die.
    declare_dead(0);
    (void)ring_.release_dead(owners_);
  }
}

TEST_F(RequestRingTest, AClientMayDieWhileItWaits) {
  for (unsigned step = 0; step < 2; ++step) {
    EXPECT_TRUE(is_killed_in([&] {
      const auto place = ring_.ask(client(), kWords);
      std::int32_t result = 0;
      if (place) (void)ring_.await(*place, owners_, kLong, &result, Death(step));
    }));
    std::vector<RequestRing::Taken> taken;
    ring_.take(owners_, [&](const RequestRing::Taken& question) { taken.push_back(question); });
    ASSERT_EQ(taken.size(), 1U);
    declare_dead(0);
    EXPECT_EQ(ring_.release_dead(owners_), 0U) << "the service works on it";
    ring_.answer(taken.front().place, 0, owners_);
    EXPECT_EQ(ring_.used_slots(), 0U);
  }
}

// A service that dies after any step: its client finds out, and no slot stays taken.
TEST_F(RequestRingTest, TheServiceMayDieAfterEveryStep) {
  for (unsigned step = 0; step < 3; ++step) {
    new (shared_) SharedRing;
    int go[2];
    ASSERT_EQ(::pipe(go), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      char letter = 0;
      (void)!::read(go[0], &letter, 1);
      ring_.take(
          owners_, [&](const RequestRing::Taken&) { ::kill(::getpid(), SIGKILL); }, Death(step));
      ::_exit(0);
    }
    const ProcessWatch watch(child);
    owners_.watch_with(&watch);
    const auto place = ring_.ask(client(), kWords);
    ASSERT_TRUE(place);
    ASSERT_EQ(::write(go[1], "g", 1), 1);
    std::int32_t result = 0;
    EXPECT_EQ(wait_for(*place, &result), RequestRing::Waited::kNever) << "step " << step;
    EXPECT_EQ(ring_.used_slots(), 0U);
    owners_.watch_with(nullptr);
    ::close(go[0]);
    ::close(go[1]);
  }
}

// In the middle of an answer: its client has it, or finds out that none comes.
TEST_F(RequestRingTest, TheServiceMayDieAfterEveryStepOfAnAnswer) {
  unsigned answers = 0;
  unsigned deaths = 0;
  for (unsigned step = 0;; ++step) {
    new (shared_) SharedRing;
    const auto place = ring_.ask(client(), kWords);
    ASSERT_TRUE(place);
    const pid_t child = ::fork();
    if (child == 0) {
      ring_.take(owners_, [&](const RequestRing::Taken& taken) {
        ring_.answer(taken.place, sum_of(taken.question), owners_, Death(step));
      });
      ::_exit(0);
    }
    siginfo_t end{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOWAIT), 0);
    const ProcessWatch watch(child);
    owners_.watch_with(&watch);
    std::int32_t result = 0;
    const RequestRing::Waited waited = wait_for(*place, &result);
    owners_.watch_with(nullptr);
    (void)::waitpid(child, nullptr, 0);
    EXPECT_NE(waited, RequestRing::Waited::kStill) << "step " << step;
    if (waited == RequestRing::Waited::kAnswered) {
      EXPECT_EQ(result, sum_of(kWords)) << "step " << step;
      ++answers;
    }
    EXPECT_EQ(ring_.used_slots(), 0U) << "step " << step;
    if (end.si_code != CLD_KILLED) break;
    ++deaths;
  }
  EXPECT_EQ(deaths, 4U);
  EXPECT_EQ(answers, 3U) << "two deaths come behind the answer, and one child lives";
}

TEST_F(RequestRingTest, AClosedRingLeavesNobodyWaiting) {
  for (int round = 0; round < 200; ++round) {
    new (shared_) SharedRing;
    std::atomic<unsigned> unanswered{0};
    std::vector<std::thread> clients;
    for (std::uint16_t number = 0; number < 3; ++number) {
      clients.emplace_back([&, number] {
        while (const auto place = ring_.ask(client(number), kWords)) {
          std::int32_t result = 0;
          if (wait_for(*place, &result) != RequestRing::Waited::kAnswered) ++unanswered;
        }
      });
    }
    for (int turn = 0; turn < round % 7; ++turn) (void)serve();
    ring_.close();
    (void)serve();
    for (std::thread& thread : clients) thread.join();
    ASSERT_EQ(unanswered.load(), 0U) << "round " << round;
    ASSERT_EQ(ring_.used_slots(), 0U) << "round " << round;
  }
}

TEST_F(RequestRingTest, AStrayStoreIntoTheBellCostsOneSleep) {
  const auto place = ring_.ask(client(), kWords);
  ASSERT_TRUE(place);
  for (auto& asked : shared_->table.asked) asked = 0;
  shared_->table.bell.retire();
  EXPECT_EQ(serve(), 0U) << "nothing says that there is a question";
  std::int32_t result = 0;
  EXPECT_EQ(wait_for(*place, &result, 2), RequestRing::Waited::kStill);
  EXPECT_EQ(serve(), 1U);
  EXPECT_EQ(wait_for(*place, &result), RequestRing::Waited::kAnswered);
}

TEST_F(RequestRingTest, AnAnswerToAnotherTurnIsNobodys) {
  const auto first = ring_.ask(client(), kWords);
  ASSERT_TRUE(first);
  std::vector<RequestRing::Taken> taken;
  ring_.take(owners_, [&](const RequestRing::Taken& question) { taken.push_back(question); });
  ASSERT_EQ(taken.size(), 1U);
  ring_.withdraw(*first);
  RequestRing::Place second;
  do {  // until the same slot's turn comes
    const auto place = ring_.ask(client(), kWords);
    ASSERT_TRUE(place);
    second = *place;
  } while (second.slot != first->slot);
  ring_.answer(taken.front().place, 1, owners_);
  std::int32_t result = 0;
  EXPECT_EQ(wait_for(second, &result, 0), RequestRing::Waited::kStill);
}

TEST_F(RequestRingTest, RubbishIsNoQuestion) {
  const char* text = std::getenv("CAIRN_SEED");
  const auto seed = text != nullptr ? static_cast<unsigned>(std::atoi(text))
                                    : static_cast<unsigned>(::time(nullptr));
  std::printf("seed %u\n", seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    for (RequestRing::Slot& slot : shared_->table.slots) {
      slot.word = static_cast<std::uint32_t>(random());
      for (auto& word : slot.question) word = random();
    }
    for (auto& asked : shared_->table.asked) asked = random();
    ring_.take(owners_, [&](const RequestRing::Taken& taken) {
      ASSERT_LT(taken.place.slot, kSlots);
      ASSERT_TRUE(owners_.is_alive(taken.asker()));
      ring_.answer(taken.place, 0, owners_);
    });
    (void)ring_.release_dead(owners_);
  }
}

}  // namespace
}  // namespace cairn
