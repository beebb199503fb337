// SPDX-License-Identifier: Apache-2.0
// The state that coordinators agree on, command by command.
#include "cluster/membership/membership_state.h"

#include <gtest/gtest.h>

#include <vector>

namespace cairn::cluster {
namespace {

constexpr NodeId kOne{1};
constexpr NodeId kTwo{2};

Command join(NodeId node, std::uint64_t nonce, std::uint64_t ticket = 0) {
  return {CommandKind::kJoin, {node, Incarnation::kNone}, nonce, ticket};
}
Command renew(NodeId node, std::uint64_t incarnation, std::uint64_t epoch) {
  return {CommandKind::kRenew, {node, Incarnation{incarnation}}, epoch};
}

class States : public testing::Test {
 protected:
  MembershipState::Effect apply(const std::vector<Command>& commands) {
    return state_.apply(commands);
  }
  MembershipState state_{64};
};

TEST_F(States, JoinsOfOneEntryMakeOneView) {
  EXPECT_TRUE(apply({join(kTwo, 7), join(kOne, 8)}).has_changed_view);
  EXPECT_EQ(state_.view().epoch, Epoch{1});
  EXPECT_EQ(state_.view().nodes(), (std::vector{kOne, kTwo}));
  EXPECT_TRUE(state_.view().has({kTwo, Incarnation{1}}));
}

TEST_F(States, AJoinThatComesAgainChangesNothing) {
  apply({join(kOne, 7)});
  EXPECT_FALSE(apply({join(kOne, 7)}).has_changed_view);
  EXPECT_EQ(state_.ticket_for(kOne), 1U);
  apply({join(kOne, 8, 1)});
  EXPECT_TRUE(state_.view().has({kOne, Incarnation{2}}));
  EXPECT_FALSE(apply({join(kOne, 9)}).has_changed_view) << "a late one of a process before";
  EXPECT_TRUE(state_.view().has({kOne, Incarnation{2}}));
}

TEST_F(States, ARemovalHoldsOnlyForWhoHasNotRenewedSince) {
  apply({join(kOne, 7)});
  const std::uint64_t seen = state_.renewed_by(kOne);
  apply({renew(kOne, 1, 1)});
  EXPECT_FALSE(apply({{CommandKind::kRemove, {kOne, Incarnation{1}}, seen}}).has_changed_view);
  const std::uint64_t last = state_.renewed_by(kOne);
  EXPECT_TRUE(apply({{CommandKind::kRemove, {kOne, Incarnation{1}}, last}}).has_changed_view);
  EXPECT_TRUE(state_.view().members.empty());
  EXPECT_TRUE(apply({renew(kOne, 1, 2)}).renewed.empty());
}

TEST_F(States, AViewIsSettledWhenAllItsMembersKnowIt) {
  apply({join(kOne, 7)});
  EXPECT_EQ(state_.settled(), Epoch{0});
  apply({renew(kOne, 1, 1)});
  EXPECT_EQ(state_.settled(), Epoch{1});
  apply({join(kTwo, 8)});
  apply({renew(kOne, 1, 2)});
  EXPECT_EQ(state_.settled(), Epoch{1}) << "the second has not said so";
  apply({renew(kTwo, 2, 2)});
  EXPECT_EQ(state_.settled(), Epoch{2});
  apply({renew(kOne, 1, 99)});
  EXPECT_EQ(state_.settled(), Epoch{2});
}

TEST_F(States, ASnapshotIsTheState) {
  apply({join(kOne, 7), join(kTwo, 8)});
  apply({renew(kOne, 1, 1)});
  MembershipState other(64);
  const Bytes snapshot = state_.snapshot();
  ASSERT_TRUE(other.restore(snapshot).is_ok());
  EXPECT_EQ(other.snapshot(), snapshot);
  EXPECT_EQ(other.view(), state_.view());
  EXPECT_FALSE(other.apply(std::vector{join(kOne, 7)}).has_changed_view);
  for (std::size_t length = 0; length < snapshot.size(); ++length) {
    EXPECT_FALSE(other.restore(std::span(snapshot).first(length)).is_ok()) << length;
  }
}

TEST_F(States, CommandsAreReadAsTheyWereWritten) {
  const std::vector<Command> commands = {join(kOne, 7), renew(kTwo, 3, 4)};
  const Bytes bytes = encode_commands(commands);
  EXPECT_EQ(*decode_commands(bytes), commands);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_commands(std::span(bytes).first(length)).is_ok());
  }
  Bytes strange = bytes;
  strange[4] = std::byte{9};
  EXPECT_FALSE(decode_commands(strange).is_ok());
}

}  // namespace
}  // namespace cairn::cluster
