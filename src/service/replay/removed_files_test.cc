// SPDX-License-Identifier: Apache-2.0
// What recovery makes of files that were removed or replaced, and that the store has brought back,
// wherever it is killed.
#include "service/replay/removed_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "memory/backing/store_name.h"
#include "service/replay/testing/lost_names.h"

namespace cairn::durable {
namespace {

namespace fs = std::filesystem;

class RecoverRemoved : public RecoverNames {
 protected:
  LogObject number(const std::string& name) const { return log_->hold(identity(store(name)).key); }
  void say_removed(LogObject file) { ASSERT_TRUE(log_->append_removed(file).is_ok()); }
};

// The last that anybody was told is that the name means the file. It was removed since, or
// replaced; the store has heard of neither, and recovery brings back what was told.
TEST_F(RecoverRemoved, ARemovalThatNobodyWasToldOfDoesNotTakeTheFile) {
  expect(
      [&] {
        put_in_log("a", "told");
        say({change("a", std::nullopt, named("a"))});
        say_removed(number("a"));
        fs::remove(store("a"));
      },
      {{"a", "told"}});
}

TEST_F(RecoverRemoved, TheFileThatHasReplacedItHasTheNameBefore) {
  expect(
      [&] {
        put_in_log("a", "old");
        say({change("a", std::nullopt, named("a"))});
        const LogObject a = number("a");
        put_in_log("b", "new");
        const LogObject b = number("b");
        say_removed(a);
        ASSERT_TRUE(log_->append_renamed(b, store("a")).is_ok());
        fs::remove(store("a"));
        fs::remove(store("b"));
      },
      {{"a", "old"}, {"b", "new"}});
}

// An fsync of a new file tells of all that had happened to its name before.
TEST_F(RecoverRemoved, AFileThatWasMadeUnderTheNameOfARemovedOneHasIt) {
  const auto remove_and_make = [&] {
    say_removed(number("a"));
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
TEST_F(RecoverRemoved, AFileThatWasWrittenUnderItsNewNameHasIt) {
  for (const bool was_retired : {false, true}) {
    expect(
        [&] {
          put_in_log("a", "old");
          put_in_log("b", "new");
          const FileIdentity as_b = identity(store("b"));
          const LogObject a = number("a");
          const LogObject b = log_->hold(as_b.key);
          if (was_retired) {
            put("b", "new");
            ASSERT_TRUE(log_->retire(b, log_->appended(), state_of("b")).is_ok());
          }
          say_removed(a);
          ASSERT_TRUE(log_->append_renamed(b, store("a")).is_ok());
          ASSERT_TRUE(
              log_->append_data(b, {0, std::as_bytes(std::span("newer", 5))}, {5, kModified})
                  .is_ok());
        },
        {{"a", "newer"}});
  }
}

// The number of the inode of a removed file is another one's by now.
TEST_F(RecoverRemoved, ARemovedFileIsNotTakenForAnotherOne) {
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
        say_removed(*number);
      },
      {{"a", "another"}});
}

TEST_F(RecoverRemoved, ARemovedFileWhoseSuccessorWasRemovedIsGone) {
  expect(
      [&] {
        put_in_log("a", "old");
        const LogObject old = number("a");
        say_removed(old);
        fs::rename(store("a"), root_ + "/kept");
        put_in_log("a", "new");
        const LogObject made = number("a");
        say_removed(made);
        fs::remove(store("a"));
        fs::rename(root_ + "/kept", store("a"));
      },
      {});
}

// The word of a removal comes before the deed, which may not come: its process dies.
TEST_F(RecoverRemoved, AFileThatIsThereAfterAllStays) {
  for (const bool has_more : {false, true}) {
    expect(
        [&] {
          put_in_log("a", "first");
          say_removed(number("a"));
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

TEST_F(RecoverRemoved, AFileWhosePathNobodyKnowsIsRescued) {
  put_in_log("a", "abc");
  const LogObject a = number("a");
  ASSERT_TRUE(log_->append_renamed(a, "(unknown)").is_ok());
  die();
  fs::remove(store("a"));
  const RecoveryReport report = run();
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_EQ(report.files[0].outcome, Outcome::kRescued);
}

TEST_F(RecoverRemoved, ARemovalThatWasToldDoes) {
  expect(
      [&] {
        put_in_log("a", "told");
        say({change("a", std::nullopt, named("a"))});
        say_removed(number("a"));
        say({change("a", named("a"), std::nullopt)});
      },
      {});
}

// Where it lies another file system is, or the folder that the store is mounted on.
TEST_F(RecoverRemoved, NothingIsMadeNorForgottenWhereTheStoreIsNotMounted) {
  const int folder = ::open(store().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const StoreName here = store_name_of(folder);
  ::close(folder);
  if (here == StoreName::kUnknown) GTEST_SKIP() << "this file system has no name";
  for (const bool is_removed : {false, true}) {
    for (const bool is_here : {false, true}) {
      begin();
      put("a", "");
      FileIdentity a = identity(store("a"));
      a.store = is_here ? here : static_cast<StoreName>(~raw(here));
      const auto number = log_->add_object(a, state_of("a"));
      const std::string text = "text";
      ASSERT_TRUE(
          log_->append_data(*number, {0, std::as_bytes(std::span(text))}, {text.size(), kModified})
              .is_ok());
      if (is_removed) say_removed(*number);
      fs::remove(store("a"));
      die();
      const RecoveryReport report = run();
      EXPECT_EQ(report.is_complete(), is_here);
      EXPECT_EQ(tree().contains("a"), is_here && !is_removed);
      EXPECT_EQ(run({.dry_run = true}).files.size(), is_here ? 0U : 1U) << "it stays in the log";
    }
  }
}

// The file that had the name before the removed one came to it does not mean that name any more.
TEST_F(RecoverRemoved, AFileDoesNotSupersedeTheOneThatHasReplacedIt) {
  put_in_log("a", "first");
  const LogObject first = number("a");
  put_in_log("b", "second");
  const LogObject second = number("b");
  say_removed(first);
  ASSERT_TRUE(log_->append_renamed(second, store("a")).is_ok());
  say_removed(second);
  fs::remove(store("a"));
  die();
  // The power has brought back the renaming alone.
  fs::rename(store("b"), store("a"));
  const RecoveryReport report = run();
  EXPECT_TRUE(report.is_complete());
  EXPECT_EQ(tree(), (std::map<std::string, std::string>{{"a", "second"}}));
}

}  // namespace
}  // namespace cairn::durable
