// SPDX-License-Identifier: Apache-2.0
// What recovery makes of names that the store had lost with the power, wherever it is killed.
#include "service/replay/name_replay.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/testing/fewer_rights.h"
#include "service/replay/stored_files.h"
#include "service/replay/testing/lost_names.h"

namespace cairn::durable {
namespace {

namespace fs = std::filesystem;

TEST_F(RecoverNames, AFileThatNeverCameIsMadeWithItsBytesAndMode) {
  const auto make = [this] {
    put_in_log("new", "bytes");
    say({change("new", std::nullopt, named("new"))});
    fs::remove(store("new"));
  };
  expect(make, {{"new", "bytes"}});
  struct stat status{};
  ASSERT_EQ(::stat(store("new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640U);
}

TEST_F(RecoverNames, NamesOfAFileThatIsNotForgottenStay) {
  put_in_log("new", "bytes");
  say({change("new", std::nullopt, named("new"))});
  fs::remove(store("new"));
  die();
  ASSERT_TRUE(forget_stored(tier(), [](const FileIdentity&) { return false; }).is_ok());
  ASSERT_TRUE(recover(tier(), {}).is_ok());
  struct stat status{};
  ASSERT_EQ(::stat(store("new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640U);
}

// A rescue voids the names of its own node, which programs have changed since.
TEST_F(RecoverNames, NamesThatAnEarlierStartHasLeftAreNotForgotten) {
  for (const bool is_earlier : {true, false}) {
    begin();
    put("marker", "not durable");
    NameChange made = change("marker", std::nullopt, named("marker"));
    made.may_be_empty = true;
    say({made});
    fs::remove(store("marker"));
    is_earlier ? die() : die_alone();
    ASSERT_TRUE(forget_stored(tier(), [](const FileIdentity&) { return true; }).is_ok());
    if (!is_earlier) start_anew(tier());
    run();
    EXPECT_EQ(fs::exists(store("marker")), is_earlier);
  }
}

TEST_F(RecoverNames, AFileOfWhichNothingWasDurableMayBeEmpty) {
  expect(
      [this] {
        put("marker", "not durable");
        NameChange made = change("marker", std::nullopt, named("marker"));
        made.may_be_empty = true;
        say({made});
        fs::remove(store("marker"));
      },
      {{"marker", ""}});
}

TEST_F(RecoverNames, AnEarlierJournalGoesBeforeALaterBase) {
  expect(
      [this] {
        put("journal", "of the transaction before");
        const NamedFile old = named("journal");
        // Another file holds its inode's number back.
        fs::rename(store("journal"), store("elsewhere"));
        put_in_log("journal", "of this one");
        say({change("journal", old, named("journal"))});
        fs::remove(store("journal"));
        fs::rename(store("elsewhere"), store("journal"));
      },
      {{"journal", "of this one"}});
}

TEST_F(RecoverNames, ARemovedFileThatCameBackIsRemoved) {
  expect(
      [this] {
        put("base", "base");
        put("journal", "hot");
        say({change("journal", named("journal"), std::nullopt)});
      },
      {{"base", "base"}});
}

// The log lost the word that the file's data is void, but not the one that its name is gone.
TEST_F(RecoverNames, DataOfARemovedFileDoesNotMakeItAgain) {
  expect(
      [this] {
        put_in_log("journal", "hot");
        const NamedFile journal = named("journal");
        say({change("journal", std::nullopt, journal)});
        say({change("journal", journal, std::nullopt)});
        fs::remove(store("journal"));
      },
      {});
}

TEST_F(RecoverNames, ARenameThatWasUndoneIsMadeAgain) {
  expect(
      [this] {
        put("value", "old");
        put_in_log("value.new", "new");
        say({change("value.new", std::nullopt, std::nullopt),
             change("value", named("value"), named("value.new"))});
      },
      {{"value", "new"}});
}

TEST_F(RecoverNames, AReplacementWhoseFileNeverCameIsMadeAgain) {
  expect(
      [this] {
        put("value", "old");
        put_in_log("value.new", "new");
        say({change("value.new", std::nullopt, std::nullopt),
             change("value", named("value"), named("value.new"))});
        fs::remove(store("value.new"));
      },
      {{"value", "new"}});
}

TEST_F(RecoverNames, AChainAndACircleOfRenamesAreMadeAgain) {
  expect(
      [this] {
        for (const char* name : {"0", "1", "2", "a", "b"}) put(name, name);
        put_in_log("new", "new");
        say({change("2", named("2"), named("1")), change("1", named("1"), named("0")),
             change("0", named("0"), named("new")), change("new", std::nullopt, std::nullopt),
             change("a", named("a"), named("b")), change("b", named("b"), named("a"))});
      },
      {{"0", "new"}, {"1", "0"}, {"2", "1"}, {"a", "b"}, {"b", "a"}});
}

// A kernel that has lived on has had every change: what differs was done since.
TEST_F(RecoverNames, WithoutANewStartNamesAreTheStores) {
  put_in_log("journal", "old rows");
  put("b", "kept");
  say({change("journal", {}, named("journal")), change("b", {}, named("b")),
       change("a", named("b"), {})});
  die_alone();
  fs::rename(store("b"), store("a"));
  fs::remove(store("journal"));
  EXPECT_EQ(run().names, 0u);
  EXPECT_EQ(tree(), (std::map<std::string, std::string>{{"a", "kept"}}));
}

// Generations of a file that somebody has gone on to rotate before anybody recovered.
TEST_F(RecoverNames, AFileThatWasMovedLaterStays) {
  put_in_log("new", "second");
  put_in_log("old", "first");
  const NamedFile first = named("old");
  const NamedFile second = named("new");
  say({change("ckpt", first, second), change("ckpt.old", {}, first), change("new", second, {})});
  die();
  fs::remove(store("old"));
  fs::rename(store("new"), store("ckpt.old"));
  put("ckpt", "third");
  run();
  EXPECT_EQ(tree(),
            (std::map<std::string, std::string>{{"ckpt", "third"}, {"ckpt.old", "second"}}));
}

TEST_F(RecoverNames, WhatCameLaterStays) {
  expect(
      [this] {
        put("value", "first");
        const NamedFile first = named("value");
        put_in_log("second", "second");
        say({change("value", first, named("second")), change("gone", std::nullopt, std::nullopt)});
        fs::remove(store("second"));
        fs::rename(store("value"), store("kept"));
        put("value", "third");
        put("gone", "made since");
        fs::remove(store("kept"));
      },
      {{"value", "third"}, {"gone", "made since"}});
}

TEST_F(RecoverNames, AFileThatIsElsewhereByNowIsNotMadeAgain) {
  expect(
      [this] {
        put_in_log("here", "bytes");
        say({change("here", std::nullopt, named("here"))});
        fs::rename(store("here"), store("there"));
      },
      {{"there", "bytes"}});
}

// The store had its new name durably, and the log still has the old one of its directory.
TEST_F(RecoverNames, AFileThatWentToAnotherDirectoryIsFoundThereByAUser) {
  const std::string other = root_ + "/other";
  const cairn::testing::NobodyMayAskForHandles user;
  expect(
      [&] {
        fs::remove_all(other);
        fs::create_directory(other);
        put_in_log("new", "bytes");
        say({change("new", std::nullopt, named("new"))});
        const LogObject file = log_->hold(identity(store("new")).key);
        ASSERT_TRUE(log_->append_renamed(file, other + "/new").is_ok());
        fs::rename(store("new"), other + "/new");
      },
      {});
  std::ostringstream text;
  text << std::ifstream(other + "/new", std::ios::binary).rdbuf();
  EXPECT_EQ(text.str(), "bytes");
}

TEST_F(RecoverNames, NamesThatTheStoreHasDurablyAreLeftAlone) {
  put("journal", "old");
  say({change("journal", named("journal"), std::nullopt)});
  ASSERT_TRUE(log_->retire(directory_, log_->appended(), {}).is_ok());
  EXPECT_TRUE(log_->directories().empty());
  die();
  run();
  EXPECT_EQ(tree().count("journal"), 1U);
}

TEST_F(RecoverNames, ADirectoryThatIsGoneHoldsNothingUp) {
  put_in_log("a", "bytes");
  say({change("a", std::nullopt, named("a"))});
  die();
  fs::remove_all(store());
  const RecoveryReport report = run();
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_EQ(report.files[0].outcome, Outcome::kRescued);
  fs::create_directory(store());
  EXPECT_TRUE(run().files.empty());
}

TEST_F(RecoverNames, ADirectoryThatWasRenamedIsFoundByItsHandle) {
  if (::geteuid() != 0 || handle_of(::open("/", O_PATH)).empty()) GTEST_SKIP();
  put("journal", "old");
  say({change("journal", named("journal"), std::nullopt)});
  die();
  fs::rename(store(), root_ + "/moved");
  run();
  EXPECT_TRUE(fs::is_empty(root_ + "/moved"));
}

}  // namespace
}  // namespace cairn::durable
