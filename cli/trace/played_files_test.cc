// SPDX-License-Identifier: Apache-2.0
#include "cli/trace/played_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/terminal/failure.h"

namespace cairn::cli {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class PlayedFilesTest : public ::testing::Test {
 protected:
  PlayedFilesTest() {
    std::string name = (fs::temp_directory_path() / "cairn-played-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~PlayedFilesTest() override { fs::remove_all(directory_); }

  PlayedFile& add(const std::string& path, std::uint64_t bytes_needed, bool is_written = false) {
    return plan_.files.emplace_back(PlayedFile{path, true, is_written, bytes_needed});
  }
  PlayedFiles files() const { return {plan_, directory_}; }
  std::string bytes_of(const std::string& path) const {
    std::ifstream stream(fs::path(directory_) / path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void put(const std::string& path, const std::string& bytes) const {
    std::ofstream(fs::path(directory_) / path, std::ios::binary) << bytes;
  }
  // The message of the failure.
  template <typename Action>
  static std::string failure_of(Action&& action) {
    try {
      action();
    } catch (const Failure& failure) {
      return std::string(failure.what()) + "\n" + failure.remedy();
    }
    return "nothing failed";
  }

  const PlayedContent content_;
  std::string directory_;
  PlayPlan plan_;
};

TEST_F(PlayedFilesTest, MakesWhatIsReadAndOfRightContent) {
  add("a/b/file 1", 3'000'000);
  add("written", 0, true);
  add("only opened", 0);
  const PlayedFiles::Made made = files().make();
  EXPECT_EQ(made.files, 2U);
  EXPECT_EQ(made.bytes, 3'000'000U);
  const std::string bytes = bytes_of("a/b/file 1");
  ASSERT_EQ(bytes.size(), 3'000'000U);
  EXPECT_EQ(content_.mismatch(PlayedContent::start_of("a/b/file 1"), 0, bytes), bytes.size());
  EXPECT_TRUE(fs::exists(fs::path(directory_) / "only opened"));
  EXPECT_FALSE(fs::exists(fs::path(directory_) / "written"));
  files().prepare(false);
}

TEST_F(PlayedFilesTest, LengthensWhatItHasMade) {
  add("file", 10'000);
  EXPECT_EQ(files().make().bytes, 10'000U);
  plan_.files[0].bytes_needed = 25'000;
  EXPECT_EQ(files().make().bytes, 15'000U);
  EXPECT_EQ(files().make().bytes, 0U);
  const std::string bytes = bytes_of("file");
  EXPECT_EQ(content_.mismatch(PlayedContent::start_of("file"), 0, bytes), 25'000U);
}

TEST_F(PlayedFilesTest, DoesNotTouchTheFilesOfOthers) {
  add("mine", 10'000);
  const std::string text(5000, 'x');
  put("mine", text);
  EXPECT_THAT(failure_of([&] { files().make(); }), HasSubstr("was not made by --make"));
  EXPECT_EQ(bytes_of("mine"), text);
  plan_.files[0] = PlayedFile{"mine", true, true, 0};
  EXPECT_THAT(failure_of([&] { files().prepare(false); }), HasSubstr("--overwrite"));
  files().prepare(true);
}

TEST_F(PlayedFilesTest, SaysWhatIsMissing) {
  add("file", 10'000);
  EXPECT_THAT(failure_of([&] { files().prepare(false); }), HasSubstr("file: no such file"));
  put("file", "short");
  const std::string said = failure_of([&] { files().prepare(false); });
  EXPECT_THAT(said, HasSubstr("has 5 bytes"));
  EXPECT_THAT(said, HasSubstr("10000"));
  EXPECT_THAT(said, HasSubstr("--make"));
  plan_.files[0].path = "directory";
  fs::create_directory(fs::path(directory_) / "directory");
  EXPECT_THAT(failure_of([&] { files().prepare(false); }), HasSubstr("no regular file"));
}

TEST_F(PlayedFilesTest, NoLinkLeadsOutOfTheDirectory) {
  fs::create_directory_symlink("/var", fs::path(directory_) / "out");
  add("out/file", 100, true);
  EXPECT_THAT(failure_of([&] { files().prepare(true); }), HasSubstr("a link leads out"));
  EXPECT_THAT(failure_of([&] { files().make(); }), HasSubstr("a link leads out"));
}

TEST_F(PlayedFilesTest, MakesNothingWithoutTheRoomForAll) {
  add("first", 100);
  add("huge", std::uint64_t{1} << 60);
  EXPECT_THAT(failure_of([&] { files().make(); }), HasSubstr("--first"));
  EXPECT_FALSE(fs::exists(fs::path(directory_) / "first"));
}

TEST_F(PlayedFilesTest, DirectoriesOfWhatIsWrittenAreMade) {
  add("some/where/file", 0, true);
  files().prepare(false);
  EXPECT_TRUE(fs::is_directory(fs::path(directory_) / "some/where"));
}

TEST_F(PlayedFilesTest, ContentDependsOnTheFileAndThePosition) {
  const auto begin = content_.at(PlayedContent::start_of("a"), 0, 512);
  const std::string bytes(begin.begin(), begin.end());
  EXPECT_LT(content_.mismatch(PlayedContent::start_of("b"), 0, bytes), 8U);
  EXPECT_LT(content_.mismatch(PlayedContent::start_of("a"), 4096, bytes), 8U);
  EXPECT_LT(content_.mismatch(PlayedContent::start_of("a"), 1 << 20, bytes), 8U);
  std::string changed = bytes;
  changed[300] ^= 1;
  EXPECT_EQ(content_.mismatch(PlayedContent::start_of("a"), 0, changed), 300U);
  std::vector<char> filled(3 << 20);
  content_.fill(7, 12'345, filled);
  EXPECT_EQ(content_.mismatch(7, 12'345, filled), filled.size());
}

}  // namespace
}  // namespace cairn::cli
