// SPDX-License-Identifier: Apache-2.0
#include "service/logged_files/name_story.h"

#include <gtest/gtest.h>

#include <map>

namespace cairn::node {
namespace {

using durable::NameChange;
using durable::NamedFile;

NamedFile file(std::uint64_t inode, unsigned char generation = 1) {
  return {{inode, 100}, {std::byte{generation}}};
}

class NameStories : public ::testing::Test {
 protected:
  void made(const std::string& name) { events_.push_back({NameDeed::kMade, 0, name}); }
  void removed(const std::string& name) { events_.push_back({NameDeed::kRemoved, 0, name}); }
  void moved(const std::string& from, const std::string& to) {
    ++moves_;
    events_.push_back({NameDeed::kMovedAway, moves_, from});
    events_.push_back({NameDeed::kMovedHere, moves_, to});
  }

  // The changes by name; none when the story has no end.
  std::optional<std::map<std::string, NameChange>> told() {
    NameStory story(known_);
    for (const NameEvent& event : events_) (void)story.hear(event);
    const auto changes =
        story.end([this](const std::string& name) -> std::optional<std::optional<NamedFile>> {
          const auto found = there_.find(name);
          if (found == there_.end()) return std::optional<NamedFile>();
          return std::optional<NamedFile>(found->second);
        });
    if (!changes) return std::nullopt;
    std::map<std::string, NameChange> by_name;
    for (const NameChange& change : *changes) by_name[change.name] = change;
    return by_name;
  }

  KnownNames known_;
  std::map<std::string, NamedFile> there_;
  std::vector<NameEvent> events_;
  std::uint32_t moves_ = 0;
};

TEST_F(NameStories, AFileThatIsMadeInThePlaceOfOneThatWasRemoved) {
  known_.names["journal"] = file(1);
  there_["journal"] = file(1, 2);
  removed("journal");
  made("journal");
  const auto changes = told();
  ASSERT_TRUE(changes.has_value());
  EXPECT_EQ(changes->at("journal").before, file(1));
  EXPECT_EQ(changes->at("journal").after, file(1, 2));
}

TEST_F(NameStories, ARenameSaysWhatBothNamesMean) {
  known_.names["value"] = file(1);
  there_["value"] = file(2);
  made("value.new");
  moved("value.new", "value");
  const auto changes = told();
  ASSERT_TRUE(changes.has_value());
  EXPECT_EQ(changes->at("value").before, file(1));
  EXPECT_EQ(changes->at("value").after, file(2));
  EXPECT_FALSE(changes->at("value.new").before.has_value());
  EXPECT_FALSE(changes->at("value.new").after.has_value());
}

TEST_F(NameStories, AChainOfRenamesIsTold) {
  known_.names = {{"0", file(10)}, {"1", file(11)}, {"2", std::nullopt}};
  there_ = {{"0", file(12)}, {"1", file(10)}, {"2", file(11)}};
  moved("1", "2");
  moved("0", "1");
  made("0");
  const auto changes = told();
  ASSERT_TRUE(changes.has_value());
  EXPECT_EQ(changes->at("2").after, file(11));
  EXPECT_EQ(changes->at("1").after, file(10));
  EXPECT_EQ(changes->at("0").after, file(12));
}

// A file that nobody has seen may come back under its name, and nobody could tell what it is.
TEST_F(NameStories, AFileThatCameAndWentHasNoWords) {
  known_.has_all = true;
  made("temporary");
  removed("temporary");
  EXPECT_FALSE(told().has_value());
}

TEST_F(NameStories, TwoReplacementsBetweenTwoLooksHaveNoWords) {
  known_.names["value"] = file(1);
  there_["value"] = file(3);
  for (int turn = 0; turn < 2; ++turn) {
    made("value.new");
    moved("value.new", "value");
  }
  EXPECT_FALSE(told().has_value());
}

TEST_F(NameStories, ANameThatNobodyHasLookedAtHasNoWords) {
  removed("journal");
  EXPECT_FALSE(told().has_value());
  events_.clear();
  there_["value"] = file(2);
  made("new");
  moved("new", "value");
  EXPECT_FALSE(told().has_value()) << "what did it replace?";
  known_.has_all = true;
  EXPECT_TRUE(told().has_value());
}

TEST_F(NameStories, AFileFromAnotherDirectoryHasNoWordsNorOneThatWentThere) {
  known_.has_all = true;
  known_.names["here"] = file(1);
  events_ = {{NameDeed::kMovedAway, 7, "here"}};
  EXPECT_FALSE(told().has_value());
  there_ = {{"here", file(1)}, {"there", file(2)}};
  events_ = {{NameDeed::kMovedHere, 7, "there"}};
  EXPECT_FALSE(told().has_value());
}

TEST_F(NameStories, WhatIsThereHasToBeWhatTheEventsHaveLeft) {
  known_.names["journal"] = file(1);
  removed("journal");
  there_["journal"] = file(2);
  EXPECT_FALSE(told().has_value()) << "it was made again, and the event is still to come";
  there_.clear();
  EXPECT_TRUE(told().has_value());
  // The file that was removed is there again, as far as its directory can tell.
  made("journal");
  there_["journal"] = file(1);
  EXPECT_FALSE(told().has_value());
}

TEST_F(NameStories, WhatIsBeyondWordsIsTheEndOfTheStory) {
  known_.has_all = true;
  there_["new"] = file(1);
  events_ = {{NameDeed::kBeyondWords, 0, "folder"}, {NameDeed::kMade, 0, "new"}};
  EXPECT_FALSE(told().has_value());
  NameStory story(known_);
  for (const NameEvent& event : events_) (void)story.hear(event);
  EXPECT_EQ(story.touched(), std::vector<std::string>{"new"});
}

}  // namespace
}  // namespace cairn::node
