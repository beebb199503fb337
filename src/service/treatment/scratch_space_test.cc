// SPDX-License-Identifier: Apache-2.0
#include "service/treatment/scratch_space.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "memory/tiers/testing/test_memory.h"

namespace cairn::node {
namespace {

namespace fs = std::filesystem;
using testing::kMiB;

class ScratchSpaceTest : public ::testing::Test {
 protected:
  ScratchSpaceTest() {
    std::string path = ::testing::TempDir() + "cairn-scratch-test-XXXXXX";
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    root_ = path;
    fs::create_directory(root_ / "target");
    fs::create_directory(root_ / "other");
    dead_ = make(ScratchBegin::kEmpty);
  }
  ~ScratchSpaceTest() override {
    dead_.reset();
    fs::remove_all(root_);
  }
  std::unique_ptr<ScratchSpace> make(ScratchBegin begin) {
    return std::make_unique<ScratchSpace>(memory_, memory_.owners().current(0),
                                          (root_ / "scratch").string(), begin);
  }
  std::string target(const char* name) const { return (root_ / name).string(); }
  static void write(const fs::path& path) { std::ofstream(path) << "text"; }

  fs::path root_;
  NodeMemory memory_ = testing::make_memory(testing::memory_only(32 * kMiB));
  std::unique_ptr<ScratchSpace> dead_;  // it removes nothing while a test lasts
};

TEST_F(ScratchSpaceTest, ASuccessorHasTheDirectoriesAndTheirFiles) {
  const auto place = dead_->add(7, target("target"));
  ASSERT_TRUE(place.is_ok());
  write(fs::path(place->source) / "file");
  const auto next = make(ScratchBegin::kAsLeft);
  ASSERT_TRUE(next->restore(dead_->snapshot()).is_ok());
  EXPECT_TRUE(fs::exists(fs::path(place->source) / "file"));
  EXPECT_EQ(next->places_of(7).at(0).source, place->source);
  EXPECT_EQ(next->add(7, target("target"))->source, place->source) << "it is the run's already";
  EXPECT_NE(next->add(8, target("target"))->source, place->source);
  next->end_run(7);
  EXPECT_FALSE(fs::exists(place->source));
}

TEST_F(ScratchSpaceTest, ASuccessorRemovesWhatNoPlaceNames) {
  const auto kept = dead_->add(0, target("target"));
  const ScratchSpace::Snapshot snapshot = dead_->snapshot();
  const auto begun = dead_->add(7, target("other"));
  ASSERT_TRUE(kept.is_ok() && begun.is_ok());
  write(fs::path(begun->source) / "file");
  const auto next = make(ScratchBegin::kAsLeft);
  ASSERT_TRUE(next->restore(snapshot).is_ok());
  EXPECT_TRUE(fs::exists(kept->source));
  EXPECT_FALSE(fs::exists(begun->source)) << "the run had not begun";
  EXPECT_TRUE(fs::exists(target("other")));
}

TEST_F(ScratchSpaceTest, ASuccessorMakesNoDirectoryAnew) {
  const auto place = dead_->add(7, target("target"));
  ASSERT_TRUE(place.is_ok());
  fs::remove(place->source);
  const auto next = make(ScratchBegin::kAsLeft);
  ASSERT_TRUE(next->restore(dead_->snapshot()).is_ok());
  EXPECT_FALSE(fs::exists(place->source));
}

TEST_F(ScratchSpaceTest, PlacesElsewhereAreRefused) {
  ASSERT_TRUE(dead_->add(7, target("target")).is_ok());
  const ScratchSpace::Snapshot kept = dead_->snapshot();
  const auto expect_refused = [&](const std::string& source) {
    ScratchSpace::Snapshot damaged = kept;
    damaged.places[0].source = source;
    const auto next = make(ScratchBegin::kAsLeft);
    const Status refused = next->restore(damaged);
    EXPECT_NE(refused.message().find("\"" + source + "\""), std::string::npos) << refused.message();
    EXPECT_TRUE(next->places_of(7).empty());
  };
  expect_refused("/");
  expect_refused("");
  expect_refused(target("target"));
  expect_refused(target("scratch/"));
  expect_refused(target("scratch/../target"));
  expect_refused(target("scratch/2"));  // one has been made
  EXPECT_TRUE(fs::exists(kept.places[0].source));
}

}  // namespace
}  // namespace cairn::node
