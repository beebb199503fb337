// SPDX-License-Identifier: Apache-2.0
// A store and a log whose names differ as after a power cut, and recoveries that are killed at
// every step.
//
// Thread safety: none. Ownership: owns the folders.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/testing/temporary_folder.h"
#include "service/durable_log/durable_log.h"
#include "service/durable_log/file_handle.h"
#include "service/durable_log/file_look.h"
#include "service/durable_log/superblock.h"
#include "service/replay/log_index.h"
#include "service/replay/recovery.h"
#include "service/replay/testing/killed_recovery.h"
#include "service/replay/testing/other_start.h"

namespace cairn::durable {

constexpr std::int64_t kModified = 1'600'000'000'123'456'789;

class RecoverNames : public ::testing::Test {
 protected:
  void SetUp() override { begin(); }

  std::string store(const std::string& name = "") const {
    return root_ + "/store" + (name.empty() ? "" : "/" + name);
  }
  std::string tier() const { return root_ + "/tier"; }

  // A fresh store and a log that knows its directory.
  void begin() {
    log_.reset();
    std::filesystem::remove_all(tier());
    std::filesystem::remove_all(store());
    std::filesystem::create_directory(tier());
    std::filesystem::create_directory(store());
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
    for (const auto& entry : std::filesystem::directory_iterator(store())) {
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

  // The same comes of it wherever a recovery is killed.
  template <typename Make>
  void expect(Make&& make, const std::map<std::string, std::string>& expected) {
    bool is_killed = true;
    for (int count = 0; is_killed; count += kKillStride) {
      begin();
      make();
      die();
      is_killed = is_killed_at(tier(), count);
      (void)is_killed_at(tier(), count / 2);
      const RecoveryReport report = run();
      ASSERT_TRUE(report.is_complete()) << "killed at " << count;
      ASSERT_EQ(tree(), expected) << "killed at " << count;
      ASSERT_FALSE(std::filesystem::exists(tier() + "/cairn-rescued")) << "killed at " << count;
      ASSERT_EQ(run({.dry_run = true}).names, 0U);
    }
  }

  const testing::TemporaryFolder folder_{"names"};
  const std::string root_ = folder_.path();
  std::unique_ptr<DurableLog> log_;
  LogObject directory_ = LogObject::kNone;
};

}  // namespace cairn::durable
