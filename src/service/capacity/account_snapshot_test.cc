// SPDX-License-Identifier: Apache-2.0
// A service dies and its successor takes over its accounts: over the same memory, with the same
// table of clients.
#include <gtest/gtest.h>

#include "memory/tiers/testing/test_memory.h"
#include "service/capacity/account_registry.h"

namespace cairn::node {
namespace {

using testing::kMiB;

class AccountSnapshotTest : public ::testing::Test {
 protected:
  AccountSnapshotTest() {
    memory_ = testing::make_memory(testing::memory_only(32 * kMiB));
    descriptors_.emplace(memory_);
    descriptors_->measure();
    clients_.emplace(memory_, *descriptors_, kept_);
    registry_.emplace(memory_, *clients_, config_);
  }
  static std::vector<Reservation> ram(std::uint64_t mebibytes) {
    return {Reservation{"ram", mebibytes * kMiB}};
  }
  // Account 1 has been given back, so runs have other numbers than a new registry would give them.
  void begin_runs() {
    ASSERT_TRUE(registry_->begin_run(70, 100, {}).is_ok());
    ASSERT_TRUE(registry_->begin_run(71, 300, ram(12)).is_ok());
    ASSERT_TRUE(registry_->begin_run(72, 100, {}).is_ok());
    registry_->end_run(70);
    ASSERT_TRUE(registry_->open_for_rule({0, 0, "gone"}, Reservation{"", kMiB}).is_ok());
    ASSERT_TRUE(registry_->open_for_rule(kMine, Reservation{"", 4 * kMiB}).is_ok());
    registry_->close_for_rule({0, 0, "gone"});
  }
  // The successor of a service that kept this.
  Status succeed(const AccountsSnapshot& kept) {
    registry_.emplace(memory_, *clients_, config_);
    return registry_->restore(kept);
  }
  std::uint64_t reserved(std::uint32_t run) const {
    return registry_->holdings_of(run).at(0).reserved;
  }

  const RuleKey kMine{71, 1, "mine/*"};
  NodeConfig config_;
  NodeMemory memory_;
  std::optional<DescriptorBudget> descriptors_;
  KeptMemory kept_ = std::move(KeptMemory::create().value());
  std::optional<ClientTable> clients_;
  std::optional<AccountRegistry> registry_;
};

TEST_F(AccountSnapshotTest, NumbersAndHoldingsAreThoseOfBefore) {
  begin_runs();
  const AccountId of_run = memory_.accounts().of_run(71);
  const AccountId of_other = memory_.accounts().of_run(72);
  const AccountId of_rule = registry_->snapshot().of_rules.at(0).account;
  ASSERT_EQ(raw(of_run), 2u);
  ASSERT_TRUE(succeed(registry_->snapshot()).is_ok());
  EXPECT_EQ(memory_.accounts().of_run(71), of_run);
  EXPECT_EQ(memory_.accounts().of_run(72), of_other);
  EXPECT_EQ(memory_.accounts().weight(of_run), 300u);
  EXPECT_EQ(reserved(71), 12 * kMiB);
  EXPECT_TRUE(memory_.accounts().is_of_rule(of_rule));
  EXPECT_EQ(registry_->rule_holdings().at(0).reserved, 4 * kMiB);
  EXPECT_EQ(*registry_->open_for_rule(kMine, Reservation{"", 4 * kMiB}), of_rule);
  EXPECT_FALSE(registry_->begin_run(73, 100, ram(13)).is_ok()) << "12 MiB are left";
  ASSERT_TRUE(registry_->begin_run(73, 100, ram(12)).is_ok());
  EXPECT_NE(memory_.accounts().of_run(73), of_run);
  EXPECT_NE(memory_.accounts().of_run(73), of_other);
  registry_->end_run(71);
  EXPECT_EQ(memory_.accounts().tiers[0].reserved(of_run), 0u);
}

TEST_F(AccountSnapshotTest, WhatHadBegunAndWasNotKeptIsUndone) {
  begin_runs();
  const AccountsSnapshot kept = registry_->snapshot();
  ASSERT_TRUE(registry_->begin_run(80, 100, ram(8)).is_ok());
  const auto rule = registry_->open_for_rule({80, 1, "new"}, Reservation{"", 2 * kMiB});
  ASSERT_TRUE(rule.is_ok());
  const AccountId account = memory_.accounts().of_run(80);
  ASSERT_TRUE(succeed(kept).is_ok());
  EXPECT_EQ(memory_.accounts().of_run(80), AccountId::kNobody);
  EXPECT_EQ(memory_.accounts().weight(account), 0u);
  EXPECT_EQ(memory_.accounts().tiers[0].reserved(account), 0u);
  EXPECT_FALSE(memory_.accounts().is_of_rule(*rule));
  EXPECT_EQ(memory_.accounts().tiers[0].reserved_slabs(), 16 * kMiB / kBlockBytes);
  EXPECT_TRUE(registry_->begin_run(80, 100, ram(12)).is_ok()) << "it begins again";
}

TEST_F(AccountSnapshotTest, WhatWasEndingIsThereAgain) {
  begin_runs();
  const AccountsSnapshot kept = registry_->snapshot();
  const AccountId account = memory_.accounts().of_run(71);
  registry_->close_for_rule(kMine);
  registry_->end_run(71);
  ASSERT_TRUE(succeed(kept).is_ok());
  EXPECT_EQ(memory_.accounts().of_run(71), account);
  EXPECT_EQ(reserved(71), 12 * kMiB);
  EXPECT_EQ(registry_->rule_holdings().size(), 1u);
}

TEST_F(AccountSnapshotTest, APatternComesBackToItsNumber) {
  begin_runs();
  const AccountsSnapshot kept = registry_->snapshot();
  const AccountId gone = kept.free_for_rules.back().first;
  ASSERT_EQ(kept.free_for_rules.back().second, "gone");
  ASSERT_TRUE(succeed(kept).is_ok());
  EXPECT_EQ(*registry_->open_for_rule({9, 3, "gone"}, Reservation{"", kMiB}), gone);
}

TEST_F(AccountSnapshotTest, DamageIsRefusedAndChangesNothing) {
  begin_runs();
  const AccountsSnapshot kept = registry_->snapshot();
  const auto expect_refused = [&](const char* what, auto damage) {
    AccountsSnapshot damaged = kept;
    damage(&damaged);
    const Status refused = succeed(damaged);
    EXPECT_FALSE(refused.is_ok()) << what;
    EXPECT_NE(refused.message().find(what), std::string::npos) << refused.message();
    EXPECT_EQ(memory_.accounts().tiers[0].reserved_slabs(), 16 * kMiB / kBlockBytes);
  };
  expect_refused("account 0", [](auto* it) { it->of_runs[0].account = AccountId::kNobody; });
  expect_refused("account 60", [](auto* it) { it->of_runs[0].account = AccountId{60}; });
  expect_refused("account 2 ", [](auto* it) { it->of_runs[1].account = it->of_runs[0].account; });
  expect_refused("run 71 has two", [](auto* it) { it->of_runs[1].run = it->of_runs[0].run; });
  expect_refused("no weight", [](auto* it) { it->of_runs[0].weight = 0; });
  expect_refused("account 64", [](auto* it) { it->of_rules[0].account = AccountId{64}; });
  expect_refused("rule for \"\"", [](auto* it) { it->of_rules[0].rule.pattern.clear(); });
  expect_refused("tier number 0", [](auto* it) { it->of_runs[0].reserved[0] = 1000; });
  expect_refused("tier number 3", [](auto* it) { it->of_rules[0].reserved[3] = 1; });
  expect_refused("cannot be free",
                 [](auto* it) { it->free_for_rules.emplace_back(it->of_rules[0].account, "x"); });
  EXPECT_TRUE(succeed(kept).is_ok());
}

}  // namespace
}  // namespace cairn::node
