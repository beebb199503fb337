// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/process_look.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory/tiers/testing/test_memory.h"

namespace cairn::node {
namespace {

class ProcessLookTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MemoryShape shape;
    shape.tier_bytes[0] = 4 * kBlockBytes;
    shape.clients_max = 8;
    shape.objects_max = 16;
    auto memory = NodeMemory::create(shape, {""});
    ASSERT_TRUE(memory.is_ok()) << memory.status().message();
    memory_ = std::move(memory.value());
  }
  ClientSlot& slot() { return memory_.slot(kSlot); }
  bool is_gone() { return ProcessLook(memory_).is_gone(memory_.owners().current(kSlot)); }

  static constexpr std::uint16_t kSlot = 3;
  NodeMemory memory_;
};

TEST_F(ProcessLookTest, AProcessIsGoneWhenItHasEnded) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  slot().pid.store(child);
  EXPECT_FALSE(is_gone());
  ::kill(child, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(is_gone()) << "nobody has waited for it";
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(is_gone());
}

TEST_F(ProcessLookTest, NobodyHasASlotThatIsNotOffered) {
  EXPECT_TRUE(is_gone());
  EXPECT_FALSE(ProcessLook(memory_).is_gone(memory_.owners().current(ClientSlot::kOfService)));
}

// The taker of an offer is at work before the service knows of it.
TEST_F(ProcessLookTest, SomebodyMayHaveTakenAnOffer) {
  slot().offer.open(1);
  memory_.service_board().offers[2].store(kSlot);
  EXPECT_FALSE(is_gone());
  ASSERT_TRUE(slot().offer.take({kSlot, 1, 77}));
  EXPECT_FALSE(is_gone());
  memory_.service_board().offers[2].store(0);
  EXPECT_FALSE(is_gone()) << "a rescue has taken the offers down";
}

}  // namespace
}  // namespace cairn::node
