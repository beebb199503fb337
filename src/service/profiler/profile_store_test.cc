// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/profile_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "service/profiler/profile_json.h"
#include "service/profiler/testing/fake_machine.h"
#include "service/profiler/testing/sample_profile.h"

namespace cairn::profiler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ProfileStoreTest : public testing::Test {
 protected:
  std::string text() const {
    std::stringstream stream;
    stream << std::ifstream(store_.file()).rdbuf();
    return stream.str();
  }
  void write(const std::string& text) const {
    ::mkdir(store_.file().substr(0, store_.file().rfind('/')).c_str(), 0700);
    std::ofstream(store_.file()) << text;
  }

  FakeMachine machine_;
  ProfileStore store_{machine_.directory("state") + "/cairn/profiles.json"};
};

TEST_F(ProfileStoreTest, KeepsEveryValue) {
  const DeviceProfile kept = sample_profile("aaaa");
  ASSERT_TRUE(store_.save(kept).is_ok());
  const LoadedProfiles loaded = store_.load();
  EXPECT_THAT(loaded.problems, IsEmpty());
  ASSERT_EQ(loaded.profiles.size(), 1U);
  EXPECT_EQ(profile_json(loaded.profiles[0]), profile_json(kept));
  EXPECT_EQ(loaded.profiles[0].identity.st_dev, 2049U);
  EXPECT_EQ(loaded.profiles[0].figures.cells[0].latency.maximum, 3e-4 * 1.1);
}

TEST_F(ProfileStoreTest, AFileThatIsNotThereIsEmpty) {
  EXPECT_THAT(store_.load().profiles, IsEmpty());
  EXPECT_THAT(store_.load().problems, IsEmpty());
  EXPECT_FALSE(store_.find(sample_profile("aaaa").identity).has_value());
  EXPECT_EQ(store_.forget([](const auto&) { return true; }).value(), 0U);
}

TEST_F(ProfileStoreTest, FindsTheDeviceAndNoOther) {
  ASSERT_TRUE(store_.save(sample_profile("aaaa", 1e8)).is_ok());
  ASSERT_TRUE(store_.save(sample_profile("bbbb", 2e8)).is_ok());
  EXPECT_EQ(store_.find(sample_profile("aaaa").identity)->figures.read_bandwidth.value, 1e8);
  EXPECT_EQ(store_.find(sample_profile("bbbb").identity)->figures.read_bandwidth.value, 2e8);
  EXPECT_FALSE(store_.find(sample_profile("cccc").identity).has_value());
}

TEST_F(ProfileStoreTest, ADirectoryOnAnotherDeviceByNowIsUnknown) {
  const std::string place = machine_.directory("mnt");
  machine_.add_disk("sda", "8:0", uint64_t{1} << 30, "0");
  machine_.add_mount("8:0", place, "ext4", "/dev/sda");
  machine_.link("/dev/disk/by-uuid/first", "../../sda");
  DeviceProfile profile = sample_profile("");
  profile.identity = identify_directory(place, machine_.roots()).value();
  ASSERT_TRUE(store_.save(profile).is_ok());
  EXPECT_TRUE(store_.lookup(place, machine_.roots()).has_value());
  // The administrator makes a new file system, or another disk takes the place.
  ASSERT_EQ(::unlink((machine_.roots().dev + "/disk/by-uuid/first").c_str()), 0);
  machine_.link("/dev/disk/by-uuid/second", "../../sda");
  EXPECT_FALSE(store_.lookup(place, machine_.roots()).has_value());
  EXPECT_FALSE(store_.lookup("/no/such/place", machine_.roots()).has_value());
}

TEST_F(ProfileStoreTest, ANewMeasurementReplacesTheOld) {
  ASSERT_TRUE(store_.save(sample_profile("aaaa", 1e8)).is_ok());
  ASSERT_TRUE(store_.save(sample_profile("aaaa", 3e8)).is_ok());
  ASSERT_EQ(store_.load().profiles.size(), 1U);
  EXPECT_EQ(store_.load().profiles[0].figures.read_bandwidth.value, 3e8);
}

TEST_F(ProfileStoreTest, ForgetsWhatIsChosen) {
  for (const char* uuid : {"a", "b", "c"}) ASSERT_TRUE(store_.save(sample_profile(uuid)).is_ok());
  const auto count = store_.forget(
      [](const DeviceProfile& profile) { return profile.identity.file_system_uuid != "b"; });
  EXPECT_EQ(count.value(), 2U);
  ASSERT_EQ(store_.load().profiles.size(), 1U);
  EXPECT_EQ(store_.load().profiles[0].identity.file_system_uuid, "b");
}

TEST_F(ProfileStoreTest, TheOldestGiveWay) {
  nlohmann::json profiles = nlohmann::json::array();
  for (size_t index = 0; index < ProfileStore::kProfilesMax; ++index) {
    const auto date = static_cast<int64_t>(1000 + index);
    profiles.push_back(profile_json(sample_profile(std::to_string(index), 1e8, date)));
  }
  write(nlohmann::json{{"version", 1}, {"profiles", profiles}}.dump());
  ASSERT_TRUE(store_.save(sample_profile("new", 1e8, 500000)).is_ok());
  EXPECT_EQ(store_.load().profiles.size(), ProfileStore::kProfilesMax);
  EXPECT_FALSE(store_.find(sample_profile("0").identity).has_value());
  EXPECT_TRUE(store_.find(sample_profile("1").identity).has_value());
  EXPECT_TRUE(store_.find(sample_profile("new").identity).has_value());
}

TEST_F(ProfileStoreTest, AFileThatIsNoProfileFileIsIgnoredAndNamed) {
  for (const char* broken :
       {"", "{", "[]", "null", "42", "\"text\"", "{\"profiles\": []}", "{\"version\": \"1\"}",
        "{\"version\": -1}", "{\"version\": 1}", "{\"version\": 1, \"profiles\": {}}",
        "{\"version\": 0, \"profiles\": []}", "\xff\xfe{}"}) {
    write(broken);
    const LoadedProfiles loaded = store_.load();
    EXPECT_THAT(loaded.profiles, IsEmpty()) << broken;
    EXPECT_THAT(loaded.problems, ElementsAre(HasSubstr(store_.file()))) << broken;
    EXPECT_TRUE(store_.save(sample_profile("aaaa")).is_ok()) << broken;
    EXPECT_TRUE(store_.find(sample_profile("aaaa").identity).has_value()) << broken;
  }
  write(std::string(200000, '['));
  EXPECT_EQ(store_.load().problems.size(), 1U);
  write(std::string(ProfileStore::kFileBytesMax + 1, ' '));
  EXPECT_THAT(store_.load().problems, ElementsAre(HasSubstr("at most 4 MiB")));
}

TEST_F(ProfileStoreTest, ABrokenEntryIsLeftOutAndTheOthersStay) {
  using nlohmann::json;
  const json good = profile_json(sample_profile("good"));
  const auto with = [&good](const char* pointer, const json& value) {
    json changed = good;
    changed[json::json_pointer(pointer)] = value;
    return changed;
  };
  json without_class = good;
  without_class["device"].erase("class");
  for (const json& broken : {json(7),
                             json::object(),
                             without_class,
                             with("/device/class", "floppy"),
                             with("/device/name", 3),
                             with("/device/name", std::string(5000, 'x')),
                             with("/device/size_bytes", -4),
                             with("/device/size_bytes", 1.5),
                             with("/measured_at", "yesterday"),
                             with("/measured_at", uint64_t{1} << 62),
                             with("/figures", json::array()),
                             with("/figures/read_bandwidth", nullptr),
                             with("/figures/read_bandwidth/value", -1),
                             with("/figures/read_bandwidth/value", 1e300),
                             with("/figures/read_latency/minimum", 9e4),
                             with("/figures/direct", 1),
                             with("/figures/cells", 4),
                             with("/figures/cells", json(std::vector<int>(1000))),
                             with("/figures/cells/0/direction", "sideways"),
                             with("/figures/cells/0/depth", 1e9)}) {
    write(json{{"version", 1}, {"profiles", {broken, good}}}.dump());
    const LoadedProfiles loaded = store_.load();
    EXPECT_EQ(loaded.profiles.size(), 1U) << broken;
    EXPECT_THAT(loaded.problems, ElementsAre(HasSubstr("profile 1: "))) << broken;
  }
}

TEST_F(ProfileStoreTest, RandomDamageNeverCrashes) {
  ASSERT_TRUE(store_.save(sample_profile("aaaa")).is_ok());
  const std::string good = text();
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int repetition = 0; repetition < 500; ++repetition) {
    std::string damaged = good;
    for (unsigned change = random() % 4 + 1; change > 0; --change) {
      const size_t place = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged[place] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(place, random() % 50);
          break;
        default:
          damaged.insert(place, 1, "0123456789-e.{}[]\",:"[random() % 20]);
      }
      if (damaged.empty()) damaged = "x";
    }
    write(damaged);
    for (const DeviceProfile& profile : store_.load().profiles) {
      EXPECT_GT(profile.figures.read_bandwidth.value, 0);
    }
  }
}

TEST_F(ProfileStoreTest, AFileOfALaterVersionIsNotReplaced) {
  write("{\"version\": 2, \"profiles\": []}");
  EXPECT_THAT(store_.load().problems, ElementsAre(HasSubstr("version 2")));
  EXPECT_EQ(store_.save(sample_profile("aaaa")).code(), StatusCode::kIncompatible);
  EXPECT_THAT(text(), HasSubstr("\"version\": 2"));
}

TEST_F(ProfileStoreTest, APlaceThatCannotBeWrittenIsNamed) {
  const ProfileStore nowhere("/proc/cairn/profiles.json");
  EXPECT_THAT(nowhere.save(sample_profile("a")).message(), HasSubstr("/proc/cairn"));
  EXPECT_FALSE(ProfileStore("").save(sample_profile("a")).is_ok());
  EXPECT_THAT(ProfileStore("").load().profiles, IsEmpty());
}

TEST_F(ProfileStoreTest, WritersAtTheSameTimeLoseNothing) {
  constexpr int kWriters = 4;
  constexpr int kEach = 8;
  std::vector<pid_t> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool stored = true;
      for (int index = 0; index < kEach; ++index) {
        const std::string uuid = std::to_string(writer) + "-" + std::to_string(index);
        stored = stored && store_.save(sample_profile(uuid)).is_ok();
        // A reader sees one state or the other, never half a file.
        stored = stored && store_.load().problems.empty();
      }
      ::_exit(stored ? 0 : 1);
    }
    writers.push_back(child);
  }
  for (const pid_t writer : writers) {
    int status = -1;
    ASSERT_EQ(::waitpid(writer, &status, 0), writer);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(store_.load().profiles.size(), size_t{kWriters} * kEach);
}

TEST(ProfileStoreFile, FollowsTheXdgSpecification) {
  const char* before = std::getenv("XDG_STATE_HOME");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("XDG_STATE_HOME", "/some/state", 1);
  EXPECT_EQ(ProfileStore::default_file(), "/some/state/cairn/profiles.json");
  ::setenv("XDG_STATE_HOME", "relative", 1);
  EXPECT_EQ(ProfileStore::default_file().front(), '/') << "a relative path is to be ignored";
  if (before != nullptr) {
    ::setenv("XDG_STATE_HOME", kept.c_str(), 1);
  } else {
    ::unsetenv("XDG_STATE_HOME");
  }
}

TEST(DateText, IsTheDayInUtc) {
  EXPECT_EQ(date_text(0), "1970-01-01");
  EXPECT_EQ(date_text(1795219199), "2026-11-20");
  EXPECT_EQ(date_text(1795219200), "2026-11-21");
}

}  // namespace
}  // namespace cairn::profiler
