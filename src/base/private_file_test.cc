// SPDX-License-Identifier: Apache-2.0
// Things that another user has put in the way beforehand: a file, a hard link, a symbolic link.
#include "base/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace cairn {
namespace {

namespace fs = std::filesystem;

class PrivateFile : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/cairn-private-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    path_ = directory_ + "/pool";
  }
  void TearDown() override { fs::remove_all(directory_); }

  int opened_directory() const {
    const Result<int> opened = open_safe_directory(directory_);
    EXPECT_TRUE(opened.is_ok()) << opened.status().message();
    return opened.is_ok() ? *opened : -1;
  }
  static std::string text_of(const std::string& path) {
    std::string text;
    std::ifstream(path) >> text;
    return text;
  }

  // The bytes that a stranger's descriptor, opened before, reads after a write to `ours`.
  static std::string read_by_stranger(int strangers, int ours) {
    EXPECT_EQ(::pwrite(ours, "secret", 6, 0), 6);
    char seen[16] = {};
    const ssize_t got = ::pread(strangers, seen, sizeof seen, 0);
    return std::string(seen, static_cast<std::size_t>(got < 0 ? 0 : got));
  }

  std::string directory_;
  std::string path_;
};

TEST_F(PrivateFile, UnnamedOnesHaveNoNameAndNobodyElse) {
  const int directory = opened_directory();
  for (const bool has_name : {false, true}) {
    const int ours =
        has_name ? open_and_unlink_file(directory, "pool", 0) : open_unnamed_file(directory, 0);
    ASSERT_GE(ours, 0);
    struct stat status{};
    ASSERT_EQ(::fstat(ours, &status), 0);
    EXPECT_EQ(status.st_nlink, 0u);
    EXPECT_EQ(status.st_mode & 07777, 0600u);
    EXPECT_EQ(status.st_uid, ::geteuid());
    EXPECT_TRUE(fs::is_empty(directory_));
    ::close(ours);
  }
  ::close(directory);
}

TEST_F(PrivateFile, APlantedFileIsNeitherUsedNorRemoved) {
  std::ofstream(path_) << "kept";
  const int directory = opened_directory();
  EXPECT_EQ(open_and_unlink_file(directory, "pool", 0), -EEXIST);
  const int ours = open_unnamed_file(directory, 0);
  ASSERT_GE(ours, 0);
  EXPECT_EQ(::pwrite(ours, "secret", 6, 0), 6);
  EXPECT_EQ(text_of(path_), "kept");
  ::close(ours);
  ::close(directory);
}

TEST_F(PrivateFile, APlantedLinkIsNotFollowed) {
  const std::string target = directory_ + "/target";
  std::ofstream(target) << "kept";
  const int directory = opened_directory();
  for (const char* points_to : {"target", "nowhere"}) {
    fs::create_symlink(points_to, path_);
    EXPECT_EQ(open_and_unlink_file(directory, "pool", 0), -EEXIST);
    EXPECT_TRUE(fs::is_symlink(path_));
    EXPECT_FALSE(fs::exists(directory_ + "/nowhere"));
    fs::remove(path_);
  }
  EXPECT_EQ(text_of(target), "kept");
  ::close(directory);
}

TEST_F(PrivateFile, ADirectoryThatEverybodyMayChangeIsRefusedByName) {
  for (const mode_t mode : {0777, 0703, 0722}) {
    ASSERT_EQ(::chmod(directory_.c_str(), mode), 0);
    const Status status = check_safe_directory(directory_);
    EXPECT_EQ(status.code(), StatusCode::kDenied);
    EXPECT_NE(status.message().find("chmod o-w " + directory_), std::string::npos)
        << status.message();
  }
  for (const mode_t mode : {0700, 0755, 0770, 02775, 01777, 01703}) {
    ASSERT_EQ(::chmod(directory_.c_str(), mode), 0);
    EXPECT_TRUE(check_safe_directory(directory_).is_ok()) << mode;
  }
  EXPECT_EQ(check_safe_directory(path_).code(), StatusCode::kNotFound);
  std::ofstream(path_) << "a file";
  EXPECT_FALSE(check_safe_directory(path_).is_ok());
}

TEST_F(PrivateFile, NewOnesReplaceWhatLiesThere) {
  const int strangers = ::open(path_.c_str(), O_RDWR | O_CREAT, 0666);
  ASSERT_GE(strangers, 0);
  ASSERT_EQ(::link(path_.c_str(), (directory_ + "/other").c_str()), 0);
  const int ours = open_new_file(path_.c_str(), 0600);
  ASSERT_GE(ours, 0);
  EXPECT_EQ(read_by_stranger(strangers, ours), "");
  ::close(ours);
  ::close(strangers);
  fs::remove(path_);
  fs::create_directory(path_);  // cannot be unlinked
  EXPECT_EQ(open_new_file(path_.c_str(), 0600), -EEXIST);
}

TEST_F(PrivateFile, OnlyWhatNobodyElseMayWriteIsBelieved) {
  const int file = ::open(path_.c_str(), O_RDWR | O_CREAT, 0600);
  EXPECT_TRUE(is_written_by_user_alone(file));
  ASSERT_EQ(::fchmod(file, 0644), 0);
  EXPECT_TRUE(is_written_by_user_alone(file));
  for (const mode_t mode : {0620, 0602, 0666}) {
    ASSERT_EQ(::fchmod(file, mode), 0);
    EXPECT_FALSE(is_written_by_user_alone(file));
  }
  ASSERT_EQ(::fchmod(file, 0600), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::fchown(file, 1234, 1234), 0);
    EXPECT_FALSE(is_written_by_user_alone(file));
  }
  ::close(file);
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  EXPECT_FALSE(is_written_by_user_alone(pipe_ends[0]));
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

}  // namespace
}  // namespace cairn
