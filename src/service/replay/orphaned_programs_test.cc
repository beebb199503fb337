// SPDX-License-Identifier: Apache-2.0
// Programs have outlived the node, and left word of what they have stored by themselves
// (memory/flush/orphan_words.h).
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <thread>

#include "memory/flush/orphan_words.h"
#include "service/durable_log/directory_storage.h"
#include "service/replay/testing/lost_names.h"

namespace cairn::durable {
namespace {

namespace fs = std::filesystem;

class OrphanedPrograms : public RecoverNames {
 protected:
  Lsn put_older(const std::string& name) {
    put(name, "0123456789");
    const auto file = log_->add_object(identity(store(name)), state_of(name));
    // The service was storing it: any time is explained then.
    EXPECT_TRUE(log_->begin_storing(*file).is_ok());
    const std::string older = "older bytes";
    return *log_->append_data(*file, {0, std::as_bytes(std::span(older))},
                              {older.size(), kModified});
  }
  OrphanWord word(const std::string& name, Lsn upto) const {
    const ObjectKey key = identity(store(name)).key;
    OrphanWord word;
    word.log = log_->id();
    word.upto = raw(upto);
    word.store = raw(key.store);
    word.inode = key.id.inode;
    word.birth_ns = static_cast<std::uint64_t>(key.id.birth_ns);
    return word;
  }
  std::string folder() const { return log_folder_of(tier()); }
  std::uintmax_t words() const { return fs::file_size(folder() + "/" + OrphanWords::kName); }
};

TEST_F(OrphanedPrograms, FilesThatTheyHaveStoredAreLeftAlone) {
  for (const char* name : {"theirs", "ours", "removed", "later"}) put_older(name);
  const Lsn upto = log_->appended();
  const auto again = log_->add_object(identity(store("later")), state_of("later"));
  const std::string newer = "NEWER";
  ASSERT_TRUE(
      log_->append_data(*again, {0, std::as_bytes(std::span(newer))}, {11, kModified}).is_ok());
  {
    const OrphanWords said(folder().c_str());
    for (const char* name : {"theirs", "removed", "later"})
      ASSERT_EQ(said.say(word(name, upto)), 0);
    OrphanWord other = word("ours", upto);
    other.log ^= 1;
    ASSERT_EQ(said.say(other), 0) << "of another log";
  }
  die_alone();
  put("theirs", "newer bytes");
  fs::remove(store("removed"));
  run({.dry_run = true});
  EXPECT_EQ(words(), 4 * sizeof(OrphanWord));
  run();
  const std::map<std::string, std::string> expected = {
      {"theirs", "newer bytes"}, {"ours", "older bytes"}, {"later", "NEWER56789"}};
  EXPECT_EQ(tree()["theirs"], expected.at("theirs"));
  EXPECT_EQ(tree()["ours"], expected.at("ours"));
  EXPECT_EQ(tree()["later"].substr(0, 5), "NEWER") << "a later node has logged that";
  EXPECT_FALSE(fs::exists(store("removed"))) << "it may have been a journal";
  EXPECT_EQ(words(), 0u);
  EXPECT_TRUE(run().files.empty());
}

TEST_F(OrphanedPrograms, ATornWordCountsForNothing) {
  const Lsn upto = put_older("ours");
  {
    const OrphanWords said(folder().c_str());
    ASSERT_EQ(said.say(word("ours", upto)), 0);
  }
  std::fstream file(folder() + "/" + OrphanWords::kName);
  file.seekp(20);
  file.put('x');
  file.close();
  die_alone();
  run();
  EXPECT_EQ(tree()["ours"], "older bytes");
}

TEST_F(OrphanedPrograms, ARecoveryThatIsKilledAnywhereHeedsThemStill) {
  bool is_killed = true;
  for (int count = 0; is_killed; count += kKillStride) {
    begin();
    put_older("ours");
    const Lsn upto = put_older("theirs");
    ASSERT_EQ(OrphanWords(folder().c_str()).say(word("theirs", upto)), 0);
    die_alone();
    put("theirs", "newer bytes");
    is_killed = is_killed_at(tier(), count);
    run();
    const std::map<std::string, std::string> expected = {{"ours", "older bytes"},
                                                         {"theirs", "newer bytes"}};
    ASSERT_EQ(tree(), expected) << "killed at " << count;
  }
}

// Older bytes would come over those that are being stored.
TEST_F(OrphanedPrograms, RecoveryWaitsForAProgramThatStores) {
  const Lsn upto = put_older("theirs");
  const OrphanWord last = word("theirs", upto);
  die_alone();
  std::thread recovery;
  {
    const OrphanWords storing(folder().c_str());
    ASSERT_TRUE(storing.is_locked());
    EXPECT_EQ(OrphanWords(folder().c_str(), 20).error(), -EAGAIN);
    recovery = std::thread([this] { run(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(tree()["theirs"], "0123456789") << "nothing is put there meanwhile";
    put("theirs", "newer bytes");
    EXPECT_EQ(storing.say(last), 0);
  }
  recovery.join();
  EXPECT_EQ(tree()["theirs"], "newer bytes");
}

// What somebody else has put there in its place.
TEST_F(OrphanedPrograms, AnythingButAFileIsNamed) {
  put_older("ours");
  die_alone();
  const std::string path = folder() + "/" + OrphanWords::kName;
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(OrphanWords(folder().c_str()).error(), -EBADF);
  const auto report = recover(tier(), {});
  ASSERT_FALSE(report.is_ok());
  EXPECT_NE(report.status().message().find("remove it"), std::string::npos);
  fs::remove(path);
  run();
  EXPECT_EQ(tree()["ours"], "older bytes");
}

// A child that was forked while its parent stores has no part in the lock.
TEST_F(OrphanedPrograms, TheLockEndsWithItsProcess) {
  const OrphanWords storing(folder().c_str());
  ASSERT_TRUE(storing.is_locked());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(OrphanWords(folder().c_str(), 20).error() == -EAGAIN ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "it waits as any other process";
}

}  // namespace
}  // namespace cairn::durable
