// SPDX-License-Identifier: Apache-2.0
// Contradictions within a schema are tested with their lines in schema_file_test.cc; here is what
// needs the node.
#include "policy/rules/rule_conflicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::array<TierCapacity, 2> kTiers = {TierCapacity{"ram", 1U << 20},
                                            TierCapacity{"nvme", 4U << 20}};

FileRule rule() {
  FileRule rule;
  rule.pattern = "*";
  rule.source = "f:7";
  return rule;
}

std::vector<std::string> check(const FileRule& one) { return check_rules(std::array{one}, kTiers); }

TEST(CheckRules, ATierThatDoesNotExistIsNamedWithTheNearest) {
  FileRule one = rule();
  one.tier = "nvne";
  EXPECT_THAT(check(one), ElementsAre("f:7: tier \"nvne\" does not exist; the node has ram, nvme; "
                                      "did you mean \"nvme\"?"));
  one.tier = "nvme";
  EXPECT_THAT(check(one), IsEmpty());
  EXPECT_THAT(check_rules(std::array{one}, {}),
              ElementsAre("f:7: tier \"nvme\" does not exist; the node has none"));
}

TEST(CheckRules, APolicyThatDoesNotExistIsNamed) {
  FileRule one = rule();
  one.source.clear();
  one.name = "set by hand";
  one.policy = "fastest";
  EXPECT_THAT(check(one), ElementsAre(::testing::StartsWith(
                              "rule \"set by hand\": policy: \"fastest\" is not max-bandwidth")));
  one.policy = "/opt/policy.so";
  EXPECT_THAT(check(one), IsEmpty());
}

TEST(CheckRules, APinMustFitIntoItsTier) {
  FileRule one = rule();
  one.pinned = true;
  one.tier = "ram";
  EXPECT_THAT(check(one), IsEmpty()) << "files of every size: some fit";
  one.size_max = 1U << 20;
  EXPECT_THAT(check(one), IsEmpty());
  one.size_max = (1U << 20) + 1;
  EXPECT_THAT(check(one),
              ElementsAre("f:7: pin: up to 1048577 of one file do not fit into tier ram (1M); "
                          "lower size max, give an offset range, or name a larger tier"));
  one.offset_begin = 1;
  EXPECT_THAT(check(one), IsEmpty());
  one.pinned = false;
  one.offset_begin = 0;
  EXPECT_THAT(check(one), IsEmpty());
}

TEST(CheckRules, ASmallestFileThatIsTooLargeCannotBePinned) {
  FileRule one = rule();
  one.pinned = true;
  one.tier = "ram";
  one.size_min = 2U << 20;
  EXPECT_EQ(check(one).size(), 1U);
  one.offset_end = 1U << 20;
  EXPECT_THAT(check(one), IsEmpty()) << "only the first MiB is pinned";
}

TEST(CheckRules, APinWithoutATierMustFitIntoTheLargest) {
  FileRule one = rule();
  one.pinned = true;
  one.size_max = 4U << 20;
  EXPECT_THAT(check(one), IsEmpty());
  one.size_max = 5U << 20;
  EXPECT_THAT(check(one), ElementsAre(::testing::HasSubstr("into the largest tier nvme (4M)")));
}

TEST(CheckRules, AReservationNamesATierThatHasSoMuch) {
  FileRule one = rule();
  one.reserve = Reservation{"", 1U << 20};
  EXPECT_THAT(check(one), IsEmpty());
  one.reserve = Reservation{"", 2U << 20};
  EXPECT_THAT(check(one), ElementsAre("f:7: reserve: tier ram has 1M, less than the 2M that are to "
                                      "be reserved"));
  one.reserve = Reservation{"nvme", 4U << 20};
  EXPECT_THAT(check(one), IsEmpty());
  one.reserve = Reservation{"nvmee", 1};
  EXPECT_THAT(check(one), ElementsAre(::testing::HasSubstr("did you mean \"nvme\"?")));
}

}  // namespace
}  // namespace cairn
