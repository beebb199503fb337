// SPDX-License-Identifier: Apache-2.0
#include "service/training/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/testing/temporary_folder.h"

namespace cairn::training {
namespace {

using ::testing::HasSubstr;

profiler::DeviceIdentity disk_of_test() {
  profiler::DeviceIdentity identity;
  identity.host = "node7";
  identity.device_class = profiler::DeviceClass::kNvme;
  identity.name = "nvme0n1p1";
  identity.number = "259:1";
  identity.serial = "S1";
  identity.file_system = "ext4";
  identity.file_system_uuid = "u-1";
  identity.size_bytes = 1'000'000'000;
  return identity;
}

FinishedExperiment finished_of_test(std::size_t index) {
  FinishedExperiment finished;
  finished.index = index;
  finished.experiment = {AccessKind::kWrite, 4, 65536, 1000, 1 << 24, 0};
  finished.seconds = 0.25;
  finished.rounds = 2;
  finished.spread = 0.125;
  return finished;
}

class JournalTest : public ::testing::Test {
 protected:
  std::string text() const {
    std::stringstream stream;
    stream << std::ifstream(file_).rdbuf();
    return stream.str();
  }
  void write(const std::string& text) const { std::ofstream(file_) << text; }

  // A plan and as many experiments, in a journal that is closed again.
  void fill(std::size_t experiments) {
    auto journal = Journal::open(file_, disk_of_test());
    ASSERT_TRUE(journal) << journal.status().message();
    TrainingPlan plan;
    plan.budget_seconds = 60;
    plan.space_bytes = 1 << 26;
    plan.seed = 7;
    ASSERT_TRUE(journal->begin(plan));
    for (std::size_t index = 0; index < experiments; ++index) {
      ASSERT_TRUE(journal->append(finished_of_test(index)));
    }
  }

  std::string refusal() const { return Journal::open(file_, disk_of_test()).status().message(); }

  ::cairn::testing::TemporaryFolder folder_{"training"};
  std::string file_ = folder_.path() + "/state/training.jsonl";
};

TEST_F(JournalTest, IsReadWhileItGrowsAndLeftAlone) {
  EXPECT_EQ(Journal::read(file_, disk_of_test()).status().code(), StatusCode::kNotFound);
  fill(2);
  const auto writer = Journal::open(file_, disk_of_test());
  ASSERT_TRUE(writer);
  const std::string half = text() + "{\"index\": 3";
  write(half);
  const auto reader = Journal::read(file_, disk_of_test());
  ASSERT_TRUE(reader) << reader.status().message();
  EXPECT_EQ(reader->finished().size(), 2U);
  EXPECT_EQ(text(), half);
  write("");
  EXPECT_TRUE(Journal::read(file_, disk_of_test())->finished().empty());
  EXPECT_TRUE(std::ifstream(file_).good()) << "only who may append removes an empty one";
}

TEST_F(JournalTest, KeepsPlanAndExperiments) {
  fill(3);
  const auto journal = Journal::open(file_, disk_of_test());
  ASSERT_TRUE(journal) << journal.status().message();
  ASSERT_TRUE(journal->plan());
  EXPECT_EQ(journal->plan()->seed, 7U);
  EXPECT_EQ(journal->plan()->space_bytes, std::uint64_t{1} << 26);
  ASSERT_EQ(journal->finished().size(), 3U);
  const FinishedExperiment& last = journal->finished().back();
  EXPECT_EQ(last.index, 2U);
  EXPECT_EQ(last.experiment, finished_of_test(2).experiment);
  EXPECT_DOUBLE_EQ(last.seconds, 0.25);
  EXPECT_EQ(last.rounds, 2U);
}

TEST_F(JournalTest, TornLastLineIsCutOff) {
  fill(2);
  const std::string whole = text();
  write(whole + R"({"index":2,"access":"re)");
  {
    auto journal = Journal::open(file_, disk_of_test());
    ASSERT_TRUE(journal) << journal.status().message();
    EXPECT_EQ(journal->finished().size(), 2U);
    EXPECT_EQ(journal->unreadable_lines(), 0U);
    ASSERT_TRUE(journal->append(finished_of_test(2)));
  }
  const auto journal = Journal::open(file_, disk_of_test());
  EXPECT_EQ(journal->finished().size(), 3U);
  EXPECT_EQ(text().substr(0, whole.size()), whole);
}

TEST_F(JournalTest, TornFirstLineBeginsAnew) {
  fill(0);
  write(text().substr(0, 20));
  auto journal = Journal::open(file_, disk_of_test());
  ASSERT_TRUE(journal) << journal.status().message();
  EXPECT_FALSE(journal->plan());
  EXPECT_TRUE(journal->begin({}));
}

TEST_F(JournalTest, LineThatCannotBeReadIsLeftOut) {
  fill(1);
  write(text() + "{\"index\":1}\nwhat\n");
  const auto journal = Journal::open(file_, disk_of_test());
  ASSERT_TRUE(journal) << journal.status().message();
  EXPECT_EQ(journal->finished().size(), 1U);
  EXPECT_EQ(journal->unreadable_lines(), 2U);
}

TEST_F(JournalTest, AnotherVersionIsRefused) {
  fill(1);
  std::string other = text();
  const std::string mark = "\"cairn_training\":1";
  other.replace(other.find(mark), mark.size(), "\"cairn_training\":2");
  write(other);
  EXPECT_THAT(refusal(), HasSubstr("another version of Cairn"));
  EXPECT_THAT(refusal(), HasSubstr("remove " + file_));
  EXPECT_EQ(text(), other) << "nothing is overwritten";
}

TEST_F(JournalTest, AnotherDeviceIsRefused) {
  fill(1);
  const std::string before = text();
  profiler::DeviceIdentity other = disk_of_test();
  other.file_system_uuid = "u-2";
  other.serial = "S2";
  const auto journal = Journal::open(file_, other);
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.status().code(), StatusCode::kIncompatible);
  EXPECT_THAT(journal.status().message(), HasSubstr("another device"));
  EXPECT_THAT(journal.status().message(), HasSubstr("remove " + file_));
  EXPECT_EQ(text(), before);
}

TEST_F(JournalTest, FileOfSomebodyElseIsNotTouched) {
  fill(0);
  write("my notes");
  EXPECT_THAT(refusal(), HasSubstr("is not a journal"));
  EXPECT_EQ(text(), "my notes");
}

TEST_F(JournalTest, OneProcessAtATime) {
  const auto first = Journal::open(file_, disk_of_test());
  ASSERT_TRUE(first);
  EXPECT_THAT(refusal(), HasSubstr("another process trains"));
}

TEST_F(JournalTest, FileNameHasHostAndDevice) {
  profiler::DeviceIdentity identity = disk_of_test();
  EXPECT_EQ(Journal::file_for(identity, "/s/cairn/profiles.json"),
            "/s/cairn/training-node7-nvme0n1p1.jsonl");
  identity.name = "server:/../export";
  EXPECT_EQ(Journal::file_for(identity, "/s/profiles.json"),
            "/s/training-node7-server__.._export.jsonl");
  EXPECT_EQ(Journal::file_for(identity, ""), "");
}

}  // namespace
}  // namespace cairn::training
