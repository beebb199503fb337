// SPDX-License-Identifier: Apache-2.0
#include "frontends/paths/path_filter.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace cairn {
namespace {

class PathFilterTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/cairn-filter-XXXXXX";
    root_ = std::filesystem::canonical(mkdtemp(pattern)).string();
    std::filesystem::create_directories(root_ + "/managed/below");
    std::filesystem::create_directories(root_ + "/managed-not");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void manage(const std::string& directories, const char* excludes = nullptr) {
    PathFilter::configure(directories.c_str(), excludes);
    PathFilter::resolve();
  }
  bool manages(const std::string& name) {
    return PathFilter::manages_path((root_ + "/" + name).c_str());
  }

  std::string root_;
};

TEST_F(PathFilterTest, ManagesWhatIsBelowAndNotWhatOnlyStartsTheSame) {
  manage(root_ + "/managed");
  EXPECT_TRUE(manages("managed/file"));
  EXPECT_TRUE(manages("managed/below/file"));
  EXPECT_FALSE(manages("managed-not/file"));
  EXPECT_FALSE(manages("file"));
}

TEST_F(PathFilterTest, ManagesNothingWithoutDirectories) {
  PathFilter::configure(nullptr, nullptr);
  PathFilter::resolve();
  EXPECT_FALSE(manages("managed/file"));
}

TEST_F(PathFilterTest, FindsWhereASymbolicLinkLeads) {
  std::filesystem::create_symlink(root_ + "/managed", root_ + "/link");
  manage(root_ + "/link");
  EXPECT_TRUE(manages("managed/file"));
  EXPECT_FALSE(manages("link/file")) << "the kernel never names a file by a link";
}

TEST_F(PathFilterTest, TakesSeveralDirectoriesAndSkipsMissingOnes) {
  manage(root_ + "/missing:" + root_ + "/managed:" + root_ + "/managed-not");
  EXPECT_TRUE(manages("managed/file"));
  EXPECT_TRUE(manages("managed-not/file"));
}

TEST_F(PathFilterTest, ExcludesByLastComponentByRelativeAndByWholePath) {
  manage(root_ + "/managed", "*.log:below/skip*");
  EXPECT_FALSE(manages("managed/a.log"));
  EXPECT_FALSE(manages("managed/below/b.log"));
  EXPECT_FALSE(manages("managed/below/skipped"));
  EXPECT_TRUE(manages("managed/skipped"));
  manage(root_ + "/managed", (root_ + "/managed/below/*").c_str());
  EXPECT_FALSE(manages("managed/below/x"));
  EXPECT_TRUE(manages("managed/x"));
}

TEST_F(PathFilterTest, ManagesTheWholeTreeFromTheRoot) {
  manage("/");
  EXPECT_TRUE(manages("file"));
}

TEST_F(PathFilterTest, ManagesEverythingUntilItIsConfiguredAnew) {
  manage("", "*.log");
  PathFilter::manage_everything();
  EXPECT_TRUE(manages("file"));
  EXPECT_TRUE(PathFilter::may_manage_mount(12345));
  EXPECT_FALSE(manages("a.log"));
  manage(root_ + "/managed");
  EXPECT_FALSE(manages("file"));
  EXPECT_TRUE(manages("managed/file"));
}

TEST_F(PathFilterTest, JudgesADescriptorByWhereItsFileIs) {
  manage(root_ + "/managed");
  const std::string path = root_ + "/managed/../managed/below/file";
  const int fd = ::open(path.c_str(), O_CREAT | O_RDWR, 0600);
  ASSERT_GE(fd, 0);
  EXPECT_TRUE(PathFilter::manages(fd));
  ::close(fd);
}

}  // namespace
}  // namespace cairn
