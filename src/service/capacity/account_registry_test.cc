// SPDX-License-Identifier: Apache-2.0
#include "service/capacity/account_registry.h"

#include <gtest/gtest.h>

#include "memory/pool/lease.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn::node {
namespace {

using testing::kMiB;

class AccountRegistryTest : public ::testing::Test {
 protected:
  AccountRegistryTest() {
    memory_ = testing::make_memory(testing::memory_only(32 * kMiB));
    descriptors_.emplace(memory_);
    descriptors_->measure();
    clients_.emplace(memory_, *descriptors_, kept_);
    registry_.emplace(memory_, *clients_, config_);
  }
  static std::vector<Reservation> ram(std::uint64_t mebibytes) {
    return {Reservation{"ram", mebibytes * kMiB}};
  }
  ClientInfo client(std::uint32_t run) {
    ClientInfo info;
    info.pid = 1;
    info.run = run;
    return info;
  }
  // Takes so many slabs as a thread of `self`'s process would.
  void take(Owner self, Lease& lease, unsigned slabs) {
    const auto account = static_cast<AccountId>(memory_.slot(self.slot()).account.load());
    for (unsigned count = 0; count < slabs; ++count) {
      Lease::Fresh fresh;
      ASSERT_TRUE(lease.take(memory_.pool(TierId::kMemory), {SizeClass::k64KiB, 1, account},
                             BlockWorker{&memory_.catalog(), self}, &fresh));
    }
  }

  NodeConfig config_;
  NodeMemory memory_;
  std::optional<DescriptorBudget> descriptors_;
  KeptMemory kept_ = std::move(KeptMemory::create().value());
  std::optional<ClientTable> clients_;
  std::optional<AccountRegistry> registry_;
  protocol::UnservedReason why_{};
};

TEST_F(AccountRegistryTest, RefusesWhatCannotBeMetAndSaysWhoHasIt) {
  EXPECT_TRUE(registry_->begin_run(71, 100, ram(12)).is_ok());
  const Status refused = registry_->begin_run(72, 100, ram(20));
  ASSERT_FALSE(refused.is_ok());
  EXPECT_NE(refused.message().find("20 MiB of tier ram cannot be reserved, only 16 MiB can"),
            std::string::npos)
      << refused.message();
  EXPECT_NE(refused.message().find("12 MiB by run 71"), std::string::npos) << refused.message();
  EXPECT_TRUE(registry_->begin_run(72, 100, ram(16)).is_ok());
  registry_->end_run(71);
  EXPECT_TRUE(registry_->begin_run(73, 100, ram(12)).is_ok()) << "it is free again";
}

TEST_F(AccountRegistryTest, KnowsTheTiersByName) {
  EXPECT_TRUE(registry_->begin_run(1, 100, {Reservation{"", kMiB}}).is_ok()) << "the fastest";
  EXPECT_EQ(registry_->holdings_of(1).at(0).reserved, kMiB);
  const Status unknown = registry_->begin_run(2, 100, {Reservation{"tape", kMiB}});
  EXPECT_NE(unknown.message().find("tape"), std::string::npos);
  EXPECT_NE(unknown.message().find("the node has ram"), std::string::npos) << unknown.message();
  EXPECT_FALSE(
      registry_->begin_run(2, 100, {Reservation{"ram", kMiB}, Reservation{"", kMiB}}).is_ok());
}

TEST_F(AccountRegistryTest, CountsForTheRunOfTheClientWheneverItAttached) {
  const Owner early = *clients_->attach(client(5), &why_);
  ASSERT_TRUE(registry_->begin_run(5, 100, {}).is_ok());
  const Owner late = *clients_->attach(client(5), &why_);
  const Owner other = *clients_->attach(client(6), &why_);
  Lease leases[3];
  take(early, leases[0], 3);
  take(late, leases[1], 2);
  take(other, leases[2], 4);
  EXPECT_EQ(registry_->holdings_of(5).at(0).used, 5 * kBlockBytes);
  EXPECT_EQ(memory_.accounts().tiers[0].used(AccountId::kNobody), 4u);
  registry_->end_run(5);
  EXPECT_EQ(memory_.accounts().tiers[0].used(AccountId::kNobody), 9u)
      << "what it has left behind is nobody's";
  EXPECT_TRUE(registry_->holdings_of(5).empty());
  EXPECT_EQ(memory_.slot(late.slot()).account.load(), 0u);
}

TEST_F(AccountRegistryTest, MissesWhatOthersStillHave) {
  ASSERT_TRUE(registry_->begin_run(5, 100, {}).is_ok());
  const Owner other = *clients_->attach(client(5), &why_);
  Lease lease;
  take(other, lease, 400);  // of 512
  ASSERT_TRUE(registry_->begin_run(6, 100, ram(16)).is_ok());
  EXPECT_EQ(registry_->missing_slabs(6), 256u - 112u);
  EXPECT_EQ(registry_->missing_slabs(5), 0u);
}

TEST_F(AccountRegistryTest, RunsBeyondTheTableShareTheCommonAccount) {
  for (std::uint32_t run = 1; run < kRuleAccountsFirst; ++run)
    ASSERT_TRUE(registry_->begin_run(run, 100, {}).is_ok());
  EXPECT_TRUE(registry_->begin_run(100, 100, {}).is_ok());
  EXPECT_TRUE(registry_->holdings_of(100).empty());
  EXPECT_FALSE(registry_->begin_run(101, 100, ram(1)).is_ok());
  registry_->end_run(7);
  EXPECT_TRUE(registry_->begin_run(101, 100, ram(1)).is_ok());
}

TEST_F(AccountRegistryTest, RulesReserveBesideRuns) {
  const RuleKey mine{0, 0, "mine/*"};
  const auto account = registry_->open_for_rule(mine, Reservation{"", 12 * kMiB});
  ASSERT_TRUE(account.is_ok());
  EXPECT_TRUE(memory_.accounts().is_of_rule(*account));
  EXPECT_EQ(memory_.accounts().weight(*account), 0u) << "a rule does not compete with runs";
  const Status refused = registry_->begin_run(72, 100, ram(20));
  EXPECT_NE(refused.message().find("12 MiB by the rule for mine/*"), std::string::npos)
      << refused.message();
  ASSERT_TRUE(registry_->begin_run(72, 100, ram(10)).is_ok());
  EXPECT_FALSE(registry_->open_for_rule(mine, Reservation{"ram", 19 * kMiB}).is_ok());
  ASSERT_EQ(registry_->rule_holdings().size(), 1u);
  EXPECT_EQ(registry_->rule_holdings()[0].reserved, 12 * kMiB) << "as before what was refused";
  const auto again = registry_->open_for_rule(mine, Reservation{"ram", 18 * kMiB});
  ASSERT_TRUE(again.is_ok()) << "what it has counts for it";
  EXPECT_EQ(*again, *account);
  EXPECT_FALSE(registry_->open_for_rule({0, 1, "b"}, Reservation{"", kMiB}).is_ok());
  EXPECT_EQ(registry_->rule_holdings().size(), 1u);
  registry_->close_for_rule(mine);
  EXPECT_FALSE(memory_.accounts().is_of_rule(*account));
  EXPECT_TRUE(registry_->rule_holdings().empty());
  EXPECT_TRUE(registry_->begin_run(73, 100, ram(18)).is_ok()) << "it is free again";
}

TEST_F(AccountRegistryTest, RulesOfOnePatternComeBackToOneNumber) {
  const auto first = registry_->open_for_rule({7, 1, "a"}, Reservation{"", kMiB});
  registry_->close_for_rule({7, 1, "a"});
  const auto other = registry_->open_for_rule({8, 1, "b"}, Reservation{"", kMiB});
  const auto again = registry_->open_for_rule({9, 1, "a"}, Reservation{"", kMiB});
  ASSERT_TRUE(first.is_ok() && other.is_ok() && again.is_ok());
  EXPECT_EQ(*again, *first);
  EXPECT_NE(*other, *first);
  unsigned count = 2;
  while (registry_->open_for_rule({9, ++count, "c"}, Reservation{"", kBlockBytes}).is_ok()) {
  }
  EXPECT_EQ(registry_->rule_holdings().size(), kAccountsMax - kRuleAccountsFirst);
  EXPECT_TRUE(registry_->begin_run(1, 100, {}).is_ok()) << "runs have numbers of their own";
  EXPECT_FALSE(registry_->holdings_of(1).empty());
}

// RAM of 8 MiB, and three file tiers: the middle one has room for little.
class ReservationsOfTiers : public ::testing::Test {
 protected:
  ReservationsOfTiers() {
    MemoryShape shape = testing::memory_only(8 * kMiB);
    for (const unsigned tier : {1, 3}) shape.tier_bytes[tier] = 16 * kMiB;
    shape.tier_bytes[2] = 2 * kMiB;
    memory_ = testing::make_memory(shape);
    for (const char* name : {"first", "middle", "last"}) config_.tiers.push_back({name, ""});
    descriptors_.emplace(memory_);
    descriptors_->measure();
    clients_.emplace(memory_, *descriptors_, kept_);
    registry_.emplace(memory_, *clients_, config_);
  }
  std::uint64_t reserved(std::uint32_t run, unsigned tier) const {
    return registry_->holdings_of(run).at(tier).reserved;
  }
  // What the watch does.
  std::uint64_t take_out(unsigned tier) {
    memory_.failure_board().out_of_service.fetch_or(1U << tier);
    return registry_->leave_tier(tier);
  }

  NodeConfig config_;
  NodeMemory memory_;
  std::optional<DescriptorBudget> descriptors_;
  KeptMemory kept_ = std::move(KeptMemory::create().value());
  std::optional<ClientTable> clients_;
  std::optional<AccountRegistry> registry_;
};

TEST_F(ReservationsOfTiers, GoToTheNextTierThatHasAsMuchLeft) {
  const std::string first = tier_name(config_, 1);
  ASSERT_TRUE(registry_->begin_run(1, 100, {Reservation{first, 4 * kMiB}}).is_ok());
  ASSERT_TRUE(registry_->begin_run(2, 100, {Reservation{first, kMiB / 2}}).is_ok());
  EXPECT_EQ(take_out(1), 0U);
  EXPECT_EQ(reserved(1, 1) + reserved(2, 1), 0U);
  EXPECT_EQ(reserved(1, 3), 4 * kMiB) << "more than the tier between has";
  EXPECT_EQ(reserved(2, 2), kMiB / 2);
  EXPECT_EQ(memory_.accounts().reserved_tiers.load(), 1U << 2 | 1U << 3);
  const Status refused = registry_->begin_run(3, 100, {Reservation{first, kMiB}});
  EXPECT_NE(refused.message().find("out of service"), std::string::npos) << refused.message();
}

TEST_F(ReservationsOfTiers, GoUpWhereNothingIsBelow) {
  ASSERT_TRUE(registry_->begin_run(1, 100, {Reservation{tier_name(config_, 3), 5 * kMiB}}).is_ok());
  EXPECT_EQ(take_out(3), 0U);
  EXPECT_EQ(reserved(1, 1), 5 * kMiB);
  EXPECT_EQ(take_out(1), 0U);
  EXPECT_EQ(reserved(1, 0), 5 * kMiB);
}

TEST_F(ReservationsOfTiers, AreLostWhereNoTierHasAsMuch) {
  ASSERT_TRUE(
      registry_->begin_run(1, 100, {Reservation{tier_name(config_, 3), 12 * kMiB}}).is_ok());
  EXPECT_EQ(take_out(3), 0U);
  EXPECT_EQ(take_out(1), 12 * kMiB / kBlockBytes);
}

}  // namespace
}  // namespace cairn::node
