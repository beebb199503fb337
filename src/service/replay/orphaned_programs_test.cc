// SPDX-License-Identifier: Apache-2.0
// Programs have outlived the node, and go on in the store alone (memory/flush/orphan_mark.h).
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "memory/flush/orphan_mark.h"
#include "service/durable_log/directory_storage.h"
#include "service/replay/testing/lost_names.h"

namespace cairn::durable {
namespace {

namespace fs = std::filesystem;

class OrphanedPrograms : public RecoverNames {
 protected:
  // The log has older bytes of a file that the service was storing: any time is explained then.
  void put_older(const std::string& name) {
    put(name, "0123456789");
    const auto file = log_->add_object(identity(store(name)), state_of(name));
    ASSERT_TRUE(log_->begin_storing(*file).is_ok());
    const std::string older = "older bytes";
    ASSERT_TRUE(
        log_->append_data(*file, {0, std::as_bytes(std::span(older))}, {older.size(), kModified})
            .is_ok());
  }
  std::string mark() const { return log_folder_of(tier()) + "/" + kOrphanMarkName; }
  void make_mark() const { const std::ofstream made(mark()); }
};

TEST_F(OrphanedPrograms, WhatHasChangedSinceIsNotReplaced) {
  for (const char* name : {"theirs", "ours", "removed"}) put_older(name);
  die_alone();
  put("ours", "0123456789");
  ::usleep(20'000);
  make_mark();
  put("theirs", "newer bytes");
  fs::remove(store("removed"));
  run({.dry_run = true});
  EXPECT_TRUE(fs::exists(mark()));
  ASSERT_EQ(run().files.size(), 3U);
  // The file that is gone may have been a journal.
  const std::map<std::string, std::string> expected = {{"theirs", "newer bytes"},
                                                       {"theirs.cairn-recovered", "older bytes"},
                                                       {"ours", "older bytes"}};
  EXPECT_EQ(tree(), expected);
  EXPECT_TRUE(fs::exists(tier() + "/cairn-rescued"));
  EXPECT_FALSE(fs::exists(mark()));
  EXPECT_TRUE(run().files.empty());
}

// What it has written itself is no change by others.
TEST_F(OrphanedPrograms, ARecoveryThatIsKilledAnywhereIsDoneAgain) {
  bool is_killed = true;
  for (int count = 0; is_killed; count += kKillStride) {
    begin();
    put_older("ours");
    die_alone();
    ::usleep(20'000);
    make_mark();
    is_killed = is_killed_at(tier(), count);
    run();
    const std::map<std::string, std::string> expected = {{"ours", "older bytes"}};
    ASSERT_EQ(tree(), expected) << "killed at " << count;
    ASSERT_FALSE(fs::exists(mark())) << "killed at " << count;
  }
}

}  // namespace
}  // namespace cairn::durable
