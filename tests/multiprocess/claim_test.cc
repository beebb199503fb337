// SPDX-License-Identifier: Apache-2.0
// Processes that take a slot by themselves (memory/arena/slot_offer.h) while the service is
// stopped, so that it learns of them afterwards: nobody waits, and no death of a claimant loses a
// slot.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "frontends/client/handshake.h"
#include "frontends/client/message_socket.h"
#include "multiprocess/node_process.h"
#include "multiprocess/test_client.h"

namespace cairn::testing {
namespace {

using ClaimStep = TestClient::ClaimStep;

// A service that a test stops and continues.
class Claim : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(node_.ready_line(), "ready\n") << node_.log();
    ASSERT_EQ(node_.status()["slots_in_use"], 0);
  }
  void stop() const {
    node_.signal(SIGSTOP);
    int status = 0;
    ASSERT_EQ(::waitpid(node_.pid(), &status, WUNTRACED), node_.pid());
    ASSERT_TRUE(WIFSTOPPED(status));
  }
  void go_on() const { node_.signal(SIGCONT); }
  // Dies as a process that is killed: nothing is given back.
  int die_at(ClaimStep step) const {
    return in_child([&] {
      TestClient client;
      if (!client.claim(node_.client_socket(), step)) return 1;
      ::kill(::getpid(), SIGKILL);
      return 2;
    });
  }

  NodeProcess node_{NodeOptions{}};
};

TEST_F(Claim, NobodyWaitsForAStoppedService) {
  stop();
  EXPECT_EQ(in_child([&] {
              TestClient client;
              if (!client.claim(node_.client_socket())) return 1;
              return client.memory().owners().is_alive(client.self()) ? 0 : 2;
            }),
            0);
  go_on();
  EXPECT_TRUE(node_.wait_until_reaped(0, 5));
}

TEST_F(Claim, ADeathAtEachStepGivesTheSlotBack) {
  for (const ClaimStep step : {ClaimStep::kConnected, ClaimStep::kGreeted, ClaimStep::kTaken}) {
    // More often than there are offers: a slot that were lost would be missed.
    for (unsigned round = 0; round < 3; ++round) {
      stop();
      for (unsigned death = 0; death < ServiceBoard::kOffersMax / 2; ++death)
        ASSERT_EQ(die_at(step), 128 + SIGKILL);
      go_on();
      ASSERT_TRUE(node_.wait_until_reaped(0, 5));
    }
  }
  EXPECT_EQ(in_child([&] {
              TestClient client;
              return client.claim(node_.client_socket()) ? 0 : 1;
            }),
            0);
}

TEST_F(Claim, TheServiceTakesTheSlotForWhoHasGreeted) {
  EXPECT_EQ(in_child([&] {
              TestClient client;
              if (!client.claim(node_.client_socket(), ClaimStep::kGreeted)) return 1;
              for (int look = 0; node_.status()["slots_in_use"] != 1; ++look) {
                if (look == 500) return 2;
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
              }
              return client.take() ? 0 : 3;
            }),
            0);
  EXPECT_TRUE(node_.wait_until_reaped(0, 5));
}

TEST_F(Claim, WhoComesTooLateIsWelcomed) {
  stop();
  EXPECT_EQ(in_child([&] {
              TestClient first;
              TestClient second;  // of another process in what follows; both have read one offer
              if (!first.claim(node_.client_socket(), ClaimStep::kGreeted)) return 1;
              int taken[2];
              if (::pipe(taken) != 0) return 4;
              const pid_t child = ::fork();
              if (child == 0) {
                char word = 0;
                const bool is_late = second.claim_as(node_.client_socket(), first) &&
                                     ::read(taken[0], &word, 1) == 1 && !second.take();
                go_on();
                ::_exit(is_late && second.is_welcomed() ? 0 : 1);
              }
              // The child's greeting names the offer that this process takes now.
              if (!first.take()) return 2;
              if (::write(taken[1], "t", 1) != 1) return 5;
              int status = 0;
              ::waitpid(child, &status, 0);
              return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
            }),
            0);
  go_on();
  EXPECT_TRUE(node_.wait_until_reaped(0, 5));
}

TEST_F(Claim, ALaterImageIsGreetedAfterTheEarlierOne) {
  stop();
  EXPECT_EQ(in_child([&] {
              TestClient before;
              if (!before.claim(node_.client_socket())) return 1;
              TestClient after;  // as the new image of an exec would
              if (!after.claim(node_.client_socket())) return 2;
              go_on();
              for (int look = 0; after.memory().owners().is_alive(before.self()); ++look) {
                if (look == 500) return 3;
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
              }
              if (!after.memory().owners().is_alive(after.self())) return 4;
              after.send_inherited();
              return node_.wait_until_reaped(1, 5) ? 0 : 5;
            }),
            0);
  EXPECT_TRUE(node_.wait_until_reaped(0, 5));
}

// Those wait in front of the claimant, and the service has numbers for a part of them.
TEST_F(Claim, ConnectionsThatSayNothingKeepNobodyOut) {
  constexpr rlim_t kNumbers = 200;
  constexpr int kSilent = 80;
  const rlimit few{kNumbers, kNumbers};
  ASSERT_EQ(::prlimit(node_.pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  EXPECT_EQ(in_child([&] {
              for (int count = 0; count < kSilent; ++count) {
                if (connect_seqpacket(node_.client_socket().c_str(), 0, 10'000) < 0) return 1;
              }
              if (die_at(ClaimStep::kTaken) != 128 + SIGKILL) return 2;
              return node_.wait_until_reaped(0, 10) ? 0 : 3;
            }),
            0);
}

TEST_F(Claim, StrayStoresCostOffersAndNothingElse) {
  EXPECT_EQ(in_child([&] {
              TestClient client;
              if (!client.claim(node_.client_socket())) return 1;
              for (auto& place : client.memory().service_board().offers) {
                const auto slot = static_cast<std::uint16_t>(place.load());
                SlotOffer& offer = client.memory().slot(slot).offer;
                if (offer.number_if_open() != 0)
                  (void)offer.take({slot, offer.number_if_open(), 1});
              }
              return 0;
            }),
            0);
  EXPECT_EQ(in_child([&] {
              TestClient patient;
              return patient.attach(node_.client_socket()) ? 0 : 2;
            }),
            0);
  EXPECT_TRUE(node_.wait_until_reaped(0, 2)) << "no greeting will come: nobody is waited for";
  EXPECT_EQ(node_.shut_down(), 0);
}

TEST_F(Claim, AServiceThatEndsMeanwhileIsNoticed) {
  stop();
  EXPECT_EQ(in_child([&] {
              TestClient client;
              if (!client.claim(node_.client_socket())) return 1;
              node_.signal(SIGKILL);
              const Owner service = client.memory().owners().current(ClientSlot::kOfService);
              for (int look = 0; !client.is_gone(service); ++look) {
                if (look == 500) return 2;
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
              }
              return client.is_gone(client.self()) ? 3 : 0;
            }),
            0);
}

}  // namespace
}  // namespace cairn::testing
