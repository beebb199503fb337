// SPDX-License-Identifier: Apache-2.0
// What recovery makes of names that the store had lost with the power, wherever it is killed.
#include "service/replay/name_replay.h"
#include "base/testing/fewer_rights.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "service/durable_log/durable_log.h"
#include "service/durable_log/file_handle.h"
#include "service/durable_log/superblock.h"
#include "service/replay/recovery.h"
#include "service/replay/testing/other_start.h"

namespace cairn::durable {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kModified = 1'600'000'000'123'456'789;

class RecoverNames : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string made = (fs::temp_directory_path() / "names.XXXXXX").string();
    ASSERT_NE(::mkdtemp(made.data()), nullptr);
    root_ = made;
    begin();
  }
  void TearDown() override {
    log_.reset();
    fs::remove_all(root_);
  }

  std::string store(const std::string& name = "") const {
    return root_ + "/store" + (name.empty() ? "" : "/" + name);
  }
  std::string tier() const { return root_ + "/tier"; }

  // A fresh store and a log that knows its directory.
  void begin() {
    log_.reset();
    fs::remove_all(tier());
    fs::remove_all(store());
    fs::create_directory(tier());
    fs::create_directory(store());
    auto log = DurableLog::open(tier(), {.capacity_bytes = 0, .segment_bytes = kSegmentBytesMin});
    ASSERT_TRUE(log.is_ok()) << log.status().message();
    log_ = std::move(*log);
    directory_ = *log_->add_object(identity(store()), {});
  }

  void put(const std::string& name, const std::string& text) {
    std::ofstream(store(name), std::ios::binary) << text;
  }
  // All names and what their files contain.
  std::map<std::string, std::string> tree() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::directory_iterator(store())) {
      std::ostringstream text;
      text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      found[entry.path().filename()] = text.str();
    }
    return found;
  }

  static FileIdentity identity(const std::string& path) {
    FileLook look;
    EXPECT_EQ(look_at(AT_FDCWD, path, &look), 0);
    FileIdentity identity;
    identity.key = file_key(1, look.file.id.inode, look.file.id.birth_ns);
    identity.path = path;
    identity.handle = look.file.handle;
    return identity;
  }
  NamedFile named(const std::string& name) const {
    const FileIdentity found = identity(store(name));
    return {found.key.id, found.handle};
  }

  FileState state_of(const std::string& name) const {
    struct stat status{};
    EXPECT_EQ(::stat(store(name).c_str(), &status), 0);
    return {static_cast<std::uint64_t>(status.st_size),
            status.st_mtim.tv_sec * kSecondNs + status.st_mtim.tv_nsec};
  }

  // A file that the log has all of.
  void put_in_log(const std::string& name, const std::string& text) {
    put(name, "");
    const auto number = log_->add_object(identity(store(name)), state_of(name));
    ASSERT_TRUE(
        log_->append_data(*number, {0, std::as_bytes(std::span(text))}, {text.size(), kModified})
            .is_ok());
  }
  static NameChange change(const std::string& name, std::optional<NamedFile> before,
                           std::optional<NamedFile> after) {
    NameChange made;
    made.name = name;
    made.before = std::move(before);
    made.after = std::move(after);
    made.mode = 0640;
    made.user = ::geteuid();
    made.group = ::getegid();
    return made;
  }
  void say(const std::vector<NameChange>& changes) {
    ASSERT_TRUE(log_->append_names(directory_, changes).is_ok());
  }
  // The node dies; the machine goes on.
  void die_alone() {
    ASSERT_TRUE(log_->commit(log_->appended()).is_ok());
    log_.reset();
  }
  void die() {
    die_alone();
    start_anew(tier());
  }

  RecoveryReport run(const RecoveryOptions& options = {}) {
    auto report = recover(tier(), options);
    EXPECT_TRUE(report.is_ok()) << report.status().message();
    return report ? std::move(*report) : RecoveryReport{};
  }

  // Kills the recovery before its step `count`. Returns whether it had that many.
  bool kill_at(int count) {
    const pid_t child = ::fork();
    if (child == 0) {
      int steps = 0;
      auto report = recover(tier(), {.at_step = [&](const char*) {
                              if (++steps > count) ::_exit(9);
                            }});
      ::_exit(report.is_ok() ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 1);
    return WEXITSTATUS(status) == 9;
  }

  // The same comes of it wherever a recovery is killed.
  template <typename Make>
  void expect(Make&& make, const std::map<std::string, std::string>& expected) {
    bool is_killed = true;
    for (int count = 0; is_killed; ++count) {
      begin();
      make();
      die();
      is_killed = kill_at(count);
      kill_at(count / 2);
      const RecoveryReport report = run();
      ASSERT_TRUE(report.is_complete()) << "killed at " << count;
      ASSERT_EQ(tree(), expected) << "killed at " << count;
      ASSERT_FALSE(fs::exists(tier() + "/cairn-rescued")) << "killed at " << count;
      ASSERT_EQ(run({.dry_run = true}).names, 0U);
    }
  }

  std::string root_;
  std::unique_ptr<DurableLog> log_;
  LogObject directory_ = LogObject::kNone;
};

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
        const LogObject file = log_->find(identity(store("new")).key);
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

// The last that anybody was told is that the name means the file. It was removed since, or
// replaced; the store has heard of neither, and recovery brings back what was told.
TEST_F(RecoverNames, ARemovalThatNobodyWasToldOfDoesNotTakeTheFile) {
  expect(
      [&] {
        put_in_log("a", "told");
        say({change("a", std::nullopt, named("a"))});
        const LogObject a = log_->find(identity(store("a")).key);
        ASSERT_TRUE(log_->append_removed(a).is_ok());
        fs::remove(store("a"));
      },
      {{"a", "told"}});
}

TEST_F(RecoverNames, TheFileThatHasReplacedItHasTheNameBefore) {
  expect(
      [&] {
        put_in_log("a", "old");
        say({change("a", std::nullopt, named("a"))});
        const LogObject a = log_->find(identity(store("a")).key);
        put_in_log("b", "new");
        const LogObject b = log_->find(identity(store("b")).key);
        ASSERT_TRUE(log_->append_removed(a).is_ok());
        ASSERT_TRUE(log_->append_renamed(b, store("a")).is_ok());
        fs::remove(store("a"));
        fs::remove(store("b"));
      },
      {{"a", "old"}, {"b", "new"}});
}

// An fsync of a new file tells of all that had happened to its name before.
TEST_F(RecoverNames, AFileThatWasMadeUnderTheNameOfARemovedOneHasIt) {
  const auto remove_and_make = [&] {
    const LogObject a = log_->find(identity(store("a")).key);
    ASSERT_TRUE(log_->append_removed(a).is_ok());
    // Its inode's number is kept from the other one.
    fs::rename(store("a"), root_ + "/kept");
    put_in_log("a", "new");
    fs::remove(store("a"));
  };
  for (const bool has_old : {false, true}) {
    for (const bool was_told : {false, true}) {
      expect(
          [&] {
            put_in_log("a", "old");
            if (was_told) say({change("a", std::nullopt, named("a"))});
            remove_and_make();
            if (has_old) fs::rename(root_ + "/kept", store("a"));
          },
          {{"a", "new"}});
    }
  }
}

// `b` replaced `a` and was written again, and the store has lost the replacement.
TEST_F(RecoverNames, AFileThatWasWrittenUnderItsNewNameHasIt) {
  for (const bool was_retired : {false, true}) {
    expect(
        [&] {
          put_in_log("a", "old");
          put_in_log("b", "new");
          const FileIdentity as_b = identity(store("b"));
          const LogObject a = log_->find(identity(store("a")).key);
          const LogObject b = log_->find(as_b.key);
          if (was_retired) {
            put("b", "new");
            ASSERT_TRUE(log_->retire(b, log_->appended(), state_of("b")).is_ok());
          }
          ASSERT_TRUE(log_->append_removed(a).is_ok());
          ASSERT_TRUE(log_->append_renamed(b, store("a")).is_ok());
          ASSERT_TRUE(
              log_->append_data(b, {0, std::as_bytes(std::span("newer", 5))}, {5, kModified})
                  .is_ok());
        },
        {{"a", "newer"}});
  }
}

// The number of the inode of a removed file is another one's by now.
TEST_F(RecoverNames, ARemovedFileIsNotTakenForAnotherOne) {
  expect(
      [&] {
        put("a", "another");
        FileIdentity removed = identity(store("a"));
        removed.handle.back() ^= std::byte{1};
        removed.path = store("gone");
        const auto number = log_->add_object(removed, {});
        ASSERT_TRUE(number.is_ok());
        ASSERT_TRUE(
            log_->append_data(*number, {0, std::as_bytes(std::span("gone", 4))}, {4, kModified})
                .is_ok());
        ASSERT_TRUE(log_->append_removed(*number).is_ok());
      },
      {{"a", "another"}});
}

TEST_F(RecoverNames, ARemovedFileWhoseSuccessorWasRemovedIsGone) {
  expect(
      [&] {
        put_in_log("a", "old");
        const LogObject old = log_->find(identity(store("a")).key);
        ASSERT_TRUE(log_->append_removed(old).is_ok());
        fs::rename(store("a"), root_ + "/kept");
        put_in_log("a", "new");
        const LogObject made = log_->find(identity(store("a")).key);
        ASSERT_TRUE(log_->append_removed(made).is_ok());
        fs::remove(store("a"));
        fs::rename(root_ + "/kept", store("a"));
      },
      {});
}

// The word of a removal comes before the deed, which may not come: its process dies.
TEST_F(RecoverNames, AFileThatIsThereAfterAllStays) {
  for (const bool has_more : {false, true}) {
    expect(
        [&] {
          put_in_log("a", "first");
          const LogObject a = log_->find(identity(store("a")).key);
          ASSERT_TRUE(log_->append_removed(a).is_ok());
          const auto again = log_->add_object(identity(store("a")), {});
          ASSERT_TRUE(again.is_ok());
          ASSERT_TRUE(log_->begin_storing(*again).is_ok());
          if (!has_more) return;
          ASSERT_TRUE(
              log_->append_data(*again, {0, std::as_bytes(std::span("more", 4))}, {5, kModified})
                  .is_ok());
        },
        {{"a", has_more ? "moret" : "first"}});
  }
}

TEST_F(RecoverNames, ARemovalThatWasToldDoes) {
  expect(
      [&] {
        put_in_log("a", "told");
        say({change("a", std::nullopt, named("a"))});
        const LogObject a = log_->find(identity(store("a")).key);
        ASSERT_TRUE(log_->append_removed(a).is_ok());
        say({change("a", named("a"), std::nullopt)});
      },
      {});
}

}  // namespace
}  // namespace cairn::durable
