// SPDX-License-Identifier: Apache-2.0
#include "service/treatment/rule_registry.h"

#include <gtest/gtest.h>

#include "memory/tiers/testing/test_memory.h"

namespace cairn::node {
namespace {

using testing::kMiB;

// Rules that reserve room, on a node with 32 MiB of memory.
class RuleRegistryTest : public ::testing::Test {
 protected:
  RuleRegistryTest() {
    memory_ = testing::make_memory(testing::memory_only(32 * kMiB));
    descriptors_.emplace(memory_);
    descriptors_->measure();
    clients_.emplace(memory_, *descriptors_, kept_);
    accounts_.emplace(memory_, *clients_, config_);
    registry_.emplace(memory_, config_, *accounts_, [](const std::string&) {
      return Result<std::uint8_t>(Status(StatusCode::kNotFound, "no policies here"));
    });
  }
  static FileRule reserving(const char* pattern, std::uint64_t mebibytes) {
    FileRule rule;
    rule.pattern = pattern;
    rule.reserve = Reservation{"", mebibytes * kMiB};
    return rule;
  }
  // The service dies here; what it kept is for another.
  void succeed() {
    accounts_kept_ = accounts_->snapshot();
    rules_kept_ = registry_->snapshot();
    accounts_.emplace(memory_, *clients_, config_);
    registry_.emplace(memory_, config_, *accounts_, [](const std::string&) {
      return Result<std::uint8_t>(Status(StatusCode::kNotFound, "no policies here"));
    });
  }
  // What the files of the rules have for certain, all together.
  std::uint64_t reserved() const {
    std::uint64_t bytes = 0;
    for (const RuleHolding& holding : accounts_->rule_holdings()) bytes += holding.reserved;
    return bytes / kMiB;
  }
  std::optional<AccountId> account_of(const char* path, std::uint32_t run = 0) const {
    RuleQuestion question;
    question.path = path;
    question.run = run;
    question.writes = true;
    const ObjectHandling handling = memory_.rules().decide(question, {});
    return memory_.part_of(handling, BlockNumber{3}).account;
  }

  NodeConfig config_;
  NodeMemory memory_;
  std::optional<DescriptorBudget> descriptors_;
  KeptMemory kept_ = std::move(KeptMemory::create().value());
  std::optional<ClientTable> clients_;
  std::optional<AccountRegistry> accounts_;
  std::optional<RuleRegistry> registry_;
  AccountsSnapshot accounts_kept_;
  RulesSnapshot rules_kept_;
};

TEST_F(RuleRegistryTest, WhatWasSetReservesUntilItIsSetToNothing) {
  ASSERT_TRUE(registry_->set(reserving("/d/mine/*", 4)).is_ok());
  const auto account = account_of("/d/mine/a");
  ASSERT_TRUE(account.has_value());
  EXPECT_EQ(memory_.accounts().tiers[0].reserved(*account), 4 * kMiB / kBlockBytes);
  EXPECT_EQ(account_of("/d/other"), std::nullopt);
  FileRule other;
  other.pattern = "/d/mine/*";
  other.priority = 7;
  ASSERT_TRUE(registry_->set(other).is_ok());
  EXPECT_EQ(account_of("/d/mine/a"), account) << "what is not said again stays";
  ASSERT_TRUE(registry_->set(reserving("/d/mine/*", 6)).is_ok());
  EXPECT_EQ(account_of("/d/mine/a"), account);
  EXPECT_EQ(reserved(), 6u);
  ASSERT_TRUE(registry_->set(reserving("/d/mine/*", 0)).is_ok());
  EXPECT_EQ(account_of("/d/mine/a"), std::nullopt);
  EXPECT_EQ(reserved(), 0u);
}

TEST_F(RuleRegistryTest, ARefusedReservationLeavesNoRule) {
  ASSERT_TRUE(registry_->set(reserving("a", 4)).is_ok());
  const Status refused = registry_->set(reserving("b", 25));
  ASSERT_FALSE(refused.is_ok());
  EXPECT_NE(refused.message().find("rule for b: 25 MiB of tier ram cannot be reserved, only 24 "
                                   "MiB can"),
            std::string::npos)
      << refused.message();
  EXPECT_NE(refused.message().find("4 MiB by the rule for a"), std::string::npos);
  EXPECT_FALSE(registry_->set(reserving("a", 29)).is_ok());
  EXPECT_EQ(registry_->size(), 1u);
  EXPECT_EQ(reserved(), 4u) << "the earlier one holds";
  EXPECT_FALSE(registry_->begin_run(5, {reserving("c", 10), reserving("d", 20)}).is_ok());
  EXPECT_EQ(registry_->size(), 1u);
  EXPECT_EQ(reserved(), 4u) << "all rules of a run, or none";
  EXPECT_FALSE(registry_->load({reserving("c", 25)}).is_ok());
  FileRule part = reserving("e", 1);
  part.offset_end = kMiB;
  EXPECT_NE(registry_->set(part).message().find("a reservation holds for a whole file"),
            std::string::npos);
}

TEST_F(RuleRegistryTest, TheReservationsOfARunEndWithIt) {
  ASSERT_TRUE(registry_->load({reserving("*", 2)}).is_ok());
  ASSERT_TRUE(registry_->begin_run(5, {reserving("/d/c*", 10), reserving("/d/d*", 4)}).is_ok());
  EXPECT_EQ(reserved(), 16u);
  const auto of_run = account_of("/d/c1", 5);
  const auto of_node = account_of("/d/c1", 6);
  ASSERT_TRUE(of_run && of_node);
  EXPECT_NE(of_run, of_node);
  registry_->end_run(5);
  EXPECT_EQ(reserved(), 2u);
  EXPECT_EQ(account_of("/d/c1", 5), of_node);
  EXPECT_FALSE(memory_.accounts().is_of_rule(*of_run));
}

TEST_F(RuleRegistryTest, ExplainsWhichRuleReserves) {
  FileRule rule = reserving("/d/*", 2);
  rule.name = "warm";
  ASSERT_TRUE(registry_->load({rule}).is_ok());
  const auto decisions = registry_->decisions("/d/a", 0, {});
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].property, RuleRecord::kAccount);
  EXPECT_EQ(decisions[0].rule.name, "warm");
}

TEST_F(RuleRegistryTest, ASuccessorDecidesTheSame) {
  FileRule priority;
  priority.pattern = "/d/*";
  priority.priority = 7;
  ASSERT_TRUE(registry_->load({reserving("*", 2)}).is_ok());
  ASSERT_TRUE(registry_->begin_run(5, {reserving("/d/c*", 10), reserving("/d/d*", 4)}).is_ok());
  ASSERT_TRUE(registry_->set(priority).is_ok());
  ASSERT_TRUE(registry_->set(reserving("/e/*", 3)).is_ok());
  const auto of_run = account_of("/d/c1", 5);
  const auto of_node = account_of("/d/c1", 6);
  succeed();
  ASSERT_TRUE(accounts_->restore(accounts_kept_).is_ok());
  ASSERT_TRUE(registry_->restore(rules_kept_).is_ok());
  EXPECT_EQ(registry_->size(), 5u);
  EXPECT_EQ(account_of("/d/c1", 5), of_run);
  EXPECT_EQ(account_of("/d/c1", 6), of_node);
  EXPECT_EQ(reserved(), 19u);
  EXPECT_EQ(registry_->snapshot().live.at(0).pattern, "/e/*") << "latest first";
  EXPECT_EQ(registry_->decisions("/d/x", 0, {}).at(0).property, RuleRecord::kPriority);
  registry_->end_run(5);
  EXPECT_EQ(account_of("/d/c1", 5), of_node);
  EXPECT_EQ(reserved(), 5u);
}

TEST_F(RuleRegistryTest, ASuccessorReservesNothingForRulesThatItHasNot) {
  ASSERT_TRUE(registry_->load({reserving("*", 2)}).is_ok());
  ASSERT_TRUE(registry_->set(reserving("/e/*", 3)).is_ok());
  succeed();
  rules_kept_.live.clear();  // the service died when it had opened the account for it
  ASSERT_TRUE(accounts_->restore(accounts_kept_).is_ok());
  ASSERT_TRUE(registry_->restore(rules_kept_).is_ok());
  EXPECT_EQ(reserved(), 2u);
}

TEST_F(RuleRegistryTest, ASuccessorRefusesRulesThatCannotHold) {
  FileRule elsewhere;
  elsewhere.pattern = "/d/*";
  elsewhere.tier = "tape";
  rules_kept_.live = {elsewhere};
  const Status refused = registry_->restore(rules_kept_);
  EXPECT_NE(refused.message().find("tape"), std::string::npos) << refused.message();
  rules_kept_.live.assign(RuleTable::kRulesMax + 1, FileRule{.pattern = "x"});
  EXPECT_FALSE(registry_->restore(rules_kept_).is_ok());
  EXPECT_EQ(registry_->size(), 0u);
}

}  // namespace
}  // namespace cairn::node
