// SPDX-License-Identifier: Apache-2.0
#include "service/replay/recovery.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/random_source.h"
#include "base/testing/temporary_folder.h"
#include "memory/flush/unfinished_time.h"
#include "service/durable_log/directory_storage.h"
#include "service/durable_log/durable_log.h"
#include "service/durable_log/file_handle.h"
#include "service/replay/found_file.h"
#include "service/replay/stored_files.h"
#include "service/replay/testing/killed_recovery.h"
#include "service/replay/testing/other_start.h"

namespace cairn::durable {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTime = 1'600'000'000'123'456'789;

class Recover : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(tier());
    fs::create_directory(store());
  }

  std::string tier() const { return root_ + "/tier"; }
  std::string store(const std::string& name = "") const {
    return root_ + "/store" + (name.empty() ? "" : "/" + name);
  }

  static void put(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string get(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  static std::int64_t mtime(const std::string& path) {
    struct stat status{};
    ::stat(path.c_str(), &status);
    return status.st_mtim.tv_sec * kSecondNs + status.st_mtim.tv_nsec;
  }

  void open() {
    auto log = DurableLog::open(tier(), {.capacity_bytes = 0, .segment_bytes = 1U << 20});
    ASSERT_TRUE(log.is_ok()) << log.status().message();
    log_ = std::move(*log);
  }

  // The number of a file that is on the store now.
  LogObject add(const std::string& path) {
    struct statx found{};
    const int fd = ::open(path.c_str(), O_RDONLY);
    EXPECT_EQ(::statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &found), 0);
    FileIdentity identity;
    identity.key =
        file_key(1, found.stx_ino, found.stx_btime.tv_sec * kSecondNs + found.stx_btime.tv_nsec);
    identity.path = path;
    if (with_handles_) identity.handle = handle_of(fd);
    ::close(fd);
    return *log_->add_object(identity, {found.stx_size, mtime(path)});
  }

  Lsn write(LogObject object, std::uint64_t offset, const std::string& text, std::uint64_t size,
            std::int64_t time = kTime) {
    auto lsn = log_->append_data(object, {offset, std::as_bytes(std::span(text))}, {size, time});
    EXPECT_TRUE(lsn.is_ok());
    return *lsn;
  }

  // The node dies: what was committed is there.
  void die() {
    ASSERT_TRUE(log_->commit(log_->appended()).is_ok());
    log_.reset();
  }

  RecoveryReport run(RecoveryOptions options = {}) {
    auto report = recover(tier(), options);
    EXPECT_TRUE(report.is_ok()) << report.status().message();
    return report ? std::move(*report) : RecoveryReport{};
  }

  const testing::TemporaryFolder folder_{"recover"};
  const std::string root_ = folder_.path();
  std::unique_ptr<DurableLog> log_;
  bool with_handles_ = true;
};

TEST_F(Recover, BytesSizeAndTimeComeBackOnce) {
  put(store("a"), "0123456789");
  open();
  const LogObject a = add(store("a"));
  write(a, 2, "XX", 10);
  write(a, 3, "YYYY", 10);
  write(a, 12, "end", 15);
  die();
  RecoveryReport report = run({.dry_run = true});
  EXPECT_EQ(get(store("a")), "0123456789");
  ASSERT_EQ(report.files.size(), 1U);
  report = run();
  EXPECT_TRUE(report.is_complete());
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_EQ(report.files[0].outcome, Outcome::kRestored);
  EXPECT_EQ(report.files[0].bytes, 8U);
  EXPECT_EQ(get(store("a")), std::string("01XYYYY789\0\0end", 15));
  EXPECT_EQ(mtime(store("a")), kTime);
  put(store("a"), "later");
  EXPECT_TRUE(run().files.empty());
  EXPECT_EQ(get(store("a")), "later");
}

TEST_F(Recover, WhatWasCutOffAndGrewAgainIsZeros) {
  put(store("a"), "0123456789");
  open();
  const LogObject a = add(store("a"));
  write(a, 0, "ABCDEF", 10);
  ASSERT_TRUE(log_->append_size(a, {4, kTime}).is_ok());
  ASSERT_TRUE(log_->append_size(a, {8, kTime + 1}).is_ok());
  write(a, 6, "x", 8, kTime + 2);
  die();
  EXPECT_TRUE(run().is_complete());
  EXPECT_EQ(get(store("a")), std::string("ABCD\0\0x\0", 8));
}

TEST_F(Recover, WhatIsStoredIsNotPutOverNewerBytes) {
  put(store("a"), "0123456789");
  open();
  const LogObject a = add(store("a"));
  const Lsn first = write(a, 0, "old", 10);
  ASSERT_TRUE(log_->begin_storing(a).is_ok());
  put(store("a"), "NEWER56789");
  ASSERT_TRUE(log_->retire(a, first, {10, mtime(store("a"))}).is_ok());
  write(a, 9, "!", 10);
  die();
  EXPECT_TRUE(run().is_complete());
  EXPECT_EQ(get(store("a")), "NEWER5678!");
}

TEST_F(Recover, TheServicesOwnTracesAreNoChange) {
  put(store("a"), "0123456789");
  open();
  const LogObject a = add(store("a"));
  write(a, 0, "abc", 12);
  write(a, 10, "de", 12);
  ASSERT_TRUE(log_->begin_storing(a).is_ok());
  die();
  std::fstream(store("a"), std::ios::in | std::ios::out | std::ios::binary) << "ab";
  RecoveryReport report = run();
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_EQ(report.files[0].outcome, Outcome::kRestored);
  EXPECT_EQ(get(store("a")), "abc3456789de");
}

// Data that no fsync has asked for is stored as well, and need not be in the log.
TEST_F(Recover, WhatTheServiceHasStoredPastTheLogStays) {
  put(store("a"), "0123456789");
  open();
  const LogObject a = add(store("a"));
  write(a, 0, "abc", 10);
  ASSERT_TRUE(log_->begin_storing(a).is_ok());
  die();
  std::ofstream(store("a"), std::ios::binary | std::ios::app) << "appended";
  RecoveryReport report = run();
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_EQ(report.files[0].outcome, Outcome::kRestored);
  EXPECT_EQ(get(store("a")), "abc3456789appended");
}

TEST_F(Recover, TheTimeOfDataOnItsWayIsNoChange) {
  put(store("a"), "0123456789");
  open();
  const LogObject a = add(store("a"));
  write(a, 0, "abc", 10);
  die();
  const std::int64_t marked = unfinished_time(kTime);
  const timespec times[2] = {{0, UTIME_OMIT}, {marked / kSecondNs, marked % kSecondNs}};
  ASSERT_EQ(::utimensat(AT_FDCWD, store("a").c_str(), times, 0), 0);
  RecoveryReport report = run();
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_EQ(report.files[0].outcome, Outcome::kRestored);
  EXPECT_EQ(get(store("a")), "abc3456789");
}

TEST_F(Recover, AChangeOfSomebodyElseStaysAndTheRestLiesBeside) {
  put(store("a"), "0123456789");
  open();
  write(add(store("a")), 0, "abcdefghij", 10);
  die();
  put(store("a"), "somebody else's");
  RecoveryReport report = run();
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_EQ(report.files[0].outcome, Outcome::kBeside);
  EXPECT_TRUE(report.is_complete());
  EXPECT_EQ(get(store("a")), "somebody else's");
  EXPECT_EQ(report.files[0].written, store("a.cairn-recovered"));
  EXPECT_EQ(get(store("a.cairn-recovered")), "abcdefghij");
  struct stat status{};
  ASSERT_EQ(::stat(store("a.cairn-recovered").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  EXPECT_TRUE(run().files.empty());
}

TEST_F(Recover, ARenamedFileIsFound) {
  for (const bool with_handles : {false, true}) {
    with_handles_ = with_handles;
    put(store("a"), "0123456789");
    open();
    write(add(store("a")), 0, "abc", 10);
    die();
    fs::rename(store("a"), store("b"));
    RecoveryReport report = run();
    ASSERT_EQ(report.files.size(), 1U);
    EXPECT_EQ(report.files[0].outcome, Outcome::kRestored);
    EXPECT_EQ(report.files[0].written, store("b"));
    EXPECT_EQ(get(store("b")), "abc3456789");
    EXPECT_FALSE(fs::exists(store("a")));
    fs::remove(store("b"));
  }
}

TEST_F(Recover, AMovedFileIsFoundByItsHandle) {
  put(store("a"), "0123456789");
  open();
  write(add(store("a")), 0, "abc", 10);
  die();
  const int fd = ::open(store("a").c_str(), O_RDONLY);
  const int place = ::open(store().c_str(), O_RDONLY);
  const auto handle = handle_of(fd);
  const int again = handle.empty() ? -1 : open_by_handle(place, handle, O_PATH);
  ::close(fd);
  ::close(place);
  if (again < 0) GTEST_SKIP() << "no file handles for this user here";
  ::close(again);
  fs::create_directory(store("d"));
  fs::rename(store("a"), store("d/c"));
  RecoveryReport report = run();
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_EQ(report.files[0].outcome, Outcome::kRestored);
  EXPECT_EQ(get(store("d/c")), "abc3456789");
}

TEST_F(Recover, ARemovedFileDoesNotComeBack) {
  put(store("a"), "0123456789");
  open();
  const LogObject a = add(store("a"));
  write(a, 0, "abc", 10);
  ASSERT_TRUE(log_->append_removed(a).is_ok());
  die();
  fs::remove(store("a"));
  EXPECT_TRUE(run().files.empty());
  EXPECT_TRUE(fs::is_empty(store()));
}

// The power went before the store had lost it: what was told of its content holds.
TEST_F(Recover, ARemovedFileThatTheStoreStillHasGetsItsData) {
  put(store("a"), "0123456789");
  open();
  const LogObject a = add(store("a"));
  write(a, 0, "abc", 10);
  ASSERT_TRUE(log_->append_removed(a).is_ok());
  die();
  ASSERT_EQ(run().files.size(), 1U);
  EXPECT_EQ(get(store("a")), "abc3456789");
}

TEST_F(Recover, AFileThatNeverReachedTheStoreIsMadeAnew) {
  put(store("a"), "");
  open();
  write(add(store("a")), 0, "all of it", 9);
  die();
  fs::remove(store("a"));
  put(store("other"), "");  // takes the inode, perhaps
  RecoveryReport report = run();
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_EQ(report.files[0].outcome, Outcome::kMadeAnew);
  EXPECT_EQ(get(store("a")), "all of it");
  EXPECT_EQ(mtime(store("a")), kTime);
}

// It was cut to nothing and written anew; the power went before the store had either.
TEST_F(Recover, AContentThatCameBackWithThePowerIsVoid) {
  put(store("a"), "");
  open();
  const LogObject a = add(store("a"));
  write(a, 2, "new", 5);
  ASSERT_TRUE(log_->begin_storing(a).is_ok());
  die();
  start_anew(tier());
  std::ofstream(store("a"), std::ios::binary | std::ios::app) << "an older content";
  const timespec times[2] = {{0, UTIME_OMIT}, {kTime / kSecondNs, kTime % kSecondNs}};
  ASSERT_EQ(::utimensat(AT_FDCWD, store("a").c_str(), times, 0), 0);
  RecoveryReport report = run();
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_EQ(report.files[0].outcome, Outcome::kRestored);
  EXPECT_EQ(get(store("a")), std::string("\0\0new", 5));
}

TEST_F(Recover, AFileWithoutAFolderIsRescuedWithItsHostileName) {
  fs::create_directory(store("d"));
  const std::string name = "we\nird\t\\\xff name";
  put(store("d/" + name), "0123456789");
  open();
  write(add(store("d/" + name)), 2, "abc", 10);
  die();
  fs::remove_all(store("d"));
  RecoveryReport report = run();
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_EQ(report.files[0].outcome, Outcome::kRescued);
  EXPECT_FALSE(report.is_complete());
  EXPECT_EQ(get(report.files[0].written), std::string("\0\0abc\0\0\0\0\0", 10));
  const std::string list = get(tier() + "/cairn-rescued/list.tsv");
  EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), 1);
  EXPECT_NE(list.find("we\\012ird\\011\\134"), std::string::npos) << list;
  EXPECT_TRUE(run().files.empty());
}

TEST_F(Recover, AReadOnlyFileOfOurOwnIsWritten) {
  put(store("a"), "0123456789");
  open();
  write(add(store("a")), 0, "abc", 10);
  die();
  ::chmod(store("a").c_str(), 0444);
  EXPECT_TRUE(run().is_complete());
  EXPECT_EQ(get(store("a")), "abc3456789");
  struct stat status{};
  ASSERT_EQ(::stat(store("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0444U);
}

TEST_F(Recover, AFullStoreKeepsTheFileInTheLogUntilItHasRoom) {
  put(store("a"), "0123456789");
  open();
  write(add(store("a")), 1 << 20, "far out", (1 << 20) + 7);
  die();
  // The limit of a process for its files stands for a full store; the log's segments are smaller.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1U << 20, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  RecoveryReport report = run();
  ::setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_EQ(report.files[0].outcome, Outcome::kKept);
  EXPECT_EQ(report.files[0].error, EFBIG);
  EXPECT_FALSE(report.is_complete());
  report = run();
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_EQ(report.files[0].outcome, Outcome::kRestored);
  EXPECT_EQ(get(store("a")).substr(1 << 20), "far out");
}

TEST_F(Recover, DamagedBytesAreNamedAndTheRestComesBack) {
  put(store("a"), "0123456789");
  open();
  const LogObject a = add(store("a"));
  write(a, 0, "ab", 10);
  // Large enough to be jumped over by the scan, and followed by a record that knows it was durable.
  const std::string large(100'000, 'z');
  write(a, 10, large, 100'010);
  ASSERT_TRUE(log_->commit(log_->appended()).is_ok());
  write(a, 5, "c", 100'010);
  die();
  const std::string name = tier() + "/cairn-durable/log.1";
  std::string segment = get(name);
  segment[segment.find("zzzz") + 5000] = 'y';
  put(name, segment);
  RecoveryReport report = run();
  ASSERT_EQ(report.files.size(), 1U);
  ASSERT_EQ(report.files[0].damaged.size(), 1U);
  EXPECT_EQ(report.files[0].damaged[0].first, 10U);
  EXPECT_EQ(report.files[0].damaged[0].second, 100'010U);
  EXPECT_FALSE(report.is_complete());
  EXPECT_EQ(get(store("a")).substr(0, 10), "ab234c6789");
}

TEST_F(Recover, WhatWasStoredWithoutTheLogIsForgotten) {
  put(store("a"), "0123456789");
  put(store("b"), "0123456789");
  open();
  write(add(store("a")), 0, "old", 10);
  write(add(store("b")), 0, "log", 10);
  die();
  const auto left =
      forget_stored(tier(), [&](const FileIdentity& file) { return file.path == store("a"); });
  ASSERT_TRUE(left.is_ok());
  EXPECT_EQ(*left, 1U) << "b";
  put(store("a"), "newer of a rescue");
  RecoveryReport report = run();
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_EQ(get(store("a")), "newer of a rescue");
  EXPECT_EQ(get(store("b")), "log3456789");
  EXPECT_EQ(forget_stored(tier(), [](const FileIdentity&) { return false; }).value(), 0U);
}

TEST_F(Recover, ATierInUseIsLeftAlone) {
  open();
  EXPECT_EQ(recover(tier(), {}).status().code(), StatusCode::kUnavailable);
  log_.reset();
  EXPECT_EQ(recover(root_ + "/nothing", {}).status().code(), StatusCode::kNotFound);
}

// One of each kind; what recovery makes of it, wherever it was killed.
class Killed : public Recover {
 protected:
  void make() {
    fs::remove_all(tier());
    fs::remove_all(store());
    fs::create_directory(tier());
    fs::create_directories(store("gone"));
    for (const char* name : {"a", "b", "changed", "gone/c"}) put(store(name), "0123456789");
    put(store("new"), "");
    open();
    const LogObject a = add(store("a"));
    write(a, 2, "AAA", 10);
    ASSERT_TRUE(log_->append_size(a, {4, kTime}).is_ok());
    write(a, 8, "tail", 12);
    write(add(store("b")), 0, std::string(5000, 'b'), 5000);
    write(add(store("changed")), 0, "changed by us", 13);
    write(add(store("gone/c")), 1, "lost", 10);
    write(add(store("new")), 0, "new", 3);
    die();
    put(store("changed"), "by them");
    fs::remove_all(store("gone"));
    fs::remove(store("new"));
  }

  // Names and contents of all files but the log's.
  std::map<std::string, std::string> tree() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      std::string path = entry.path().string();
      if (!entry.is_regular_file() || path.find("cairn-durable") != std::string::npos) continue;
      path = path.substr(root_.size());
      // The rescued file's name has its inode, which is another each time.
      std::string text = get(entry.path().string());
      if (path.find("cairn-rescued") != std::string::npos) {
        text = text.substr(text.find('-') == std::string::npos ? 0 : text.find('-'));
        const std::size_t dash = path.find('-', path.find("cairn-rescued/") + 14);
        if (dash != std::string::npos) path = "rescued" + path.substr(dash);
      }
      found[path] = text;
    }
    return found;
  }
};

TEST_F(Killed, ARecoveryThatIsKilledAnywhereAndRunAgainGivesTheSame) {
  make();
  run();
  const auto expected = tree();
  ASSERT_EQ(expected.size(), 7U);
  EXPECT_EQ(expected.at("/store/a"), std::string("01AA\0\0\0\0tail", 12));
  bool is_killed = true;
  int count = 0;
  for (; is_killed; count += kKillStride) {
    make();
    is_killed = is_killed_at(tier(), count);
    // Once more in the middle, a bit later, and then to the end.
    is_killed_at(tier(), count / 2);
    run();
    EXPECT_EQ(tree(), expected) << "killed at step " << count;
    EXPECT_TRUE(run().files.empty());
  }
  EXPECT_GT(count, 15);
}

}  // namespace
}  // namespace cairn::durable
