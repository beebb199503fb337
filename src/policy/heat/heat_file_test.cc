// SPDX-License-Identifier: Apache-2.0
#include "policy/heat/heat_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace cairn {
namespace {

constexpr ObjectKey kKey = file_key(0xfd01, 4711, 1'700'000'000'000'000'000);

FileHeat::State some_state(std::uint64_t seed, int accesses) {
  std::mt19937_64 random(seed);
  FileHeat heat;
  heat.open(0);
  for (int at = 0; at < accesses; ++at)
    heat.access({random() % (40 * kBlockBytes), 1 + random() % kBlockBytes}, at * 100'000'000LL);
  (void)heat.close(accesses * 100'000'000LL);
  return heat.state();
}

void expect_same(const FileHeat::State& one, const FileHeat::State& other) {
  EXPECT_EQ(one.pace, other.pace);
  EXPECT_EQ(one.file_bytes, other.file_bytes);
  EXPECT_EQ(one.closed_ns, other.closed_ns);
  EXPECT_EQ(one.epochs, other.epochs);
  EXPECT_EQ(one.segment_shift, other.segment_shift);
  ASSERT_EQ(one.scores.size(), other.scores.size());
  for (std::size_t at = 0; at < one.scores.size(); ++at) {
    EXPECT_EQ(one.scores[at].references(), other.scores[at].references());
    EXPECT_EQ(one.scores[at].fading().level, other.scores[at].fading().level);
    EXPECT_EQ(one.scores[at].error_max(), other.scores[at].error_max());
  }
}

// A directory of its own, gone with it.
class HeatFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/cairn-heat-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override {
    for (const std::string& path : paths_) ::unlink(path.c_str());
    ::rmdir(directory_.c_str());
  }
  std::string path(const std::string& name) {
    paths_.push_back(directory_ + "/" + name);
    return paths_.back();
  }
  std::string write(const std::string& name, const std::string& bytes) {
    const std::string where = path(name);
    const int descriptor = ::open(where.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    EXPECT_EQ(::write(descriptor, bytes.data(), bytes.size()), std::ssize(bytes));
    ::close(descriptor);
    return where;
  }

  std::string directory_;
  std::vector<std::string> paths_;
};

TEST_F(HeatFile, WhatIsSavedIsLoaded) {
  const FileHeat::State state = some_state(1, 400);
  const std::string map = path(heat_file_name(kKey));
  ASSERT_TRUE(save_heat(map, kKey, state).is_ok());
  const auto loaded = load_heat(map, kKey, state.pace);
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
  expect_same(*loaded, state);
  EXPECT_NE(::access((map + ".new").c_str(), F_OK), 0) << "nothing is left beside it";
}

TEST_F(HeatFile, ASecondMapReplacesTheFirst) {
  const std::string map = path("map.heat");
  ASSERT_TRUE(save_heat(map, kKey, some_state(1, 400)).is_ok());
  ASSERT_TRUE(save_heat(map, kKey, some_state(2, 10)).is_ok());
  expect_same(*load_heat(map, kKey, {}), some_state(2, 10));
}

TEST_F(HeatFile, WhatIsNotThereIsNotFound) {
  EXPECT_EQ(load_heat(path("none"), kKey, {}).status().code(), StatusCode::kNotFound);
}

TEST_F(HeatFile, WhereNothingCanBeWrittenTheErrorNamesIt) {
  const Status status = save_heat(directory_ + "/none/map.heat", kKey, some_state(1, 1));
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("/none/map.heat"), std::string::npos) << status.message();
  // A directory in the way of the name.
  ASSERT_EQ(::mkdir((directory_ + "/taken").c_str(), 0700), 0);
  EXPECT_FALSE(save_heat(directory_ + "/taken", kKey, some_state(1, 1)).is_ok());
  EXPECT_NE(::access((directory_ + "/taken.new").c_str(), F_OK), 0) << "nothing is left";
  ::rmdir((directory_ + "/taken").c_str());
}

TEST_F(HeatFile, WhatIsNoMapIsNamedAndIgnored) {
  const auto message = [](const auto& result) { return result.status().message(); };
  EXPECT_EQ(message(load_heat(write("text", "hello, world\n"), kKey, {})),
            directory_ + "/text: is not a heat map");
  EXPECT_EQ(message(load_heat(write("empty", ""), kKey, {})),
            directory_ + "/empty: is not a heat map");
  EXPECT_EQ(message(load_heat(write("large", std::string(3 << 20, 'x')), kKey, {})),
            directory_ + "/large: is larger than any heat map");
  EXPECT_FALSE(load_heat(directory_, kKey, {}).is_ok()) << "a directory";
  const std::string pipe = path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(load_heat(pipe, kKey, {}).is_ok()) << "and it does not wait";
}

TEST_F(HeatFile, AMapOfAnotherFileOrPaceIsIncompatible) {
  const std::string bytes = encode_heat(kKey, some_state(1, 20));
  for (const ObjectKey& other : {file_key(1, kKey.id.inode, kKey.id.birth_ns),
                                 file_key(raw(kKey.store), 1, kKey.id.birth_ns),
                                 file_key(raw(kKey.store), kKey.id.inode, 1)}) {
    const auto decoded = decode_heat(bytes, other, {});
    EXPECT_EQ(decoded.status().code(), StatusCode::kIncompatible);
    EXPECT_EQ(decoded.status().message(), "is the map of another file");
  }
  EXPECT_EQ(decode_heat(bytes, kKey, {HeatDecay::of(3), 1e9}).status().code(),
            StatusCode::kIncompatible);
  EXPECT_EQ(decode_heat(bytes, kKey, {{}, 1e8}).status().code(), StatusCode::kIncompatible);
}

TEST_F(HeatFile, AMapOfAnotherVersionIsNamed) {
  std::string bytes = encode_heat(kKey, some_state(1, 20));
  bytes[8] = 7;
  const auto decoded = decode_heat(bytes, kKey, {});
  EXPECT_EQ(decoded.status().code(), StatusCode::kIncompatible);
  EXPECT_EQ(decoded.status().message(), "has version 7 where this Cairn writes 1");
}

TEST_F(HeatFile, EveryTruncationIsNoticed) {
  const std::string bytes = encode_heat(kKey, some_state(3, 60));
  for (std::size_t kept = 0; kept < bytes.size(); ++kept) {
    const auto decoded = decode_heat(std::string_view(bytes).substr(0, kept), kKey, {});
    ASSERT_FALSE(decoded.is_ok()) << kept;
    ASSERT_EQ(decoded.status().code(), StatusCode::kInvalid) << kept;
    ASSERT_FALSE(decoded.status().message().empty());
  }
  EXPECT_FALSE(decode_heat(bytes + '\0', kKey, {}).is_ok());
}

TEST_F(HeatFile, EveryFlippedBitIsNoticed) {
  const std::string bytes = encode_heat(kKey, some_state(4, 60));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      const auto decoded = decode_heat(changed, kKey, {});
      ASSERT_FALSE(decoded.is_ok()) << "byte " << at << " bit " << bit;
      ASSERT_FALSE(decoded.status().message().empty());
    }
  }
}

// The map with a sum that fits its damage.
std::string with_right_sum(std::string bytes) {
  std::uint64_t sum = 0xcbf29ce484222325ULL;
  for (std::size_t at = 0; at + 8 < bytes.size(); ++at)
    sum = (sum ^ static_cast<unsigned char>(bytes[at])) * 0x100000001b3ULL;
  std::memcpy(bytes.data() + bytes.size() - 8, &sum, 8);
  return bytes;
}

TEST_F(HeatFile, RandomBytesWithARightSumNeverDoHarm) {
  unsigned accepted = 0;
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::string bytes = encode_heat(kKey, some_state(seed % 5, 20));
    for (std::uint64_t change = random() % 4 + 1; change > 0; --change)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size() + 8);
    const auto decoded = decode_heat(with_right_sum(bytes), kKey, {});
    if (!decoded) {
      ASSERT_FALSE(decoded.status().message().empty());
      continue;
    }
    // Bytes that pass as a map are one: the map can be used and saved.
    ++accepted;
    FileHeat heat;
    ASSERT_TRUE(heat.restore(*decoded));
    heat.open(1'000'000'000'000);
    heat.access({0, kBlockBytes * 3}, 1'000'000'000'001);
    heat.resize(kBlockBytes * 10'000);
    for (std::uint32_t segment = 0; segment < heat.segment_count(); ++segment)
      ASSERT_FALSE(std::isnan(heat.logarithm_at(segment, 1'000'000'000'002)));
    ASSERT_LE(heat.memory_bytes(), FileHeat::kMemoryBytesMax);
    (void)heat.close(1'000'000'000'003);
    ASSERT_TRUE(decode_heat(encode_heat(kKey, heat.state()), kKey, {}).is_ok());
  }
  EXPECT_GT(accepted, 100U) << "else this shows nothing";
}

TEST_F(HeatFile, TheLargestMapFits) {
  FileHeat heat;
  heat.open(0);
  heat.resize(kOffsetMax);
  for (int at = 0; at < 10; ++at) heat.access({0, kOffsetMax}, at * 1'000'000'000LL);
  (void)heat.close(11'000'000'000LL);
  const std::string bytes = encode_heat(kKey, heat.state());
  EXPECT_LE(bytes.size(), kHeatFileBytesMax);
  const auto decoded = decode_heat(bytes, kKey, {});
  ASSERT_TRUE(decoded.is_ok()) << decoded.status().message();
  EXPECT_EQ(decoded->scores.size(), FileHeat::kSegmentsMax);
}

TEST_F(HeatFile, NamesTellFilesApart) {
  EXPECT_EQ(heat_file_name(file_key(0xfd01, 0xa1b2c, 0x17a3f5e09c4d2b10)),
            "0000fd01-00000000000a1b2c-17a3f5e09c4d2b10.heat");
  EXPECT_NE(heat_file_name(file_key(1, 2, 3)), heat_file_name(file_key(1, 2, 4)));
  EXPECT_LT(heat_file_name(file_key(UINT64_MAX, UINT64_MAX, -1)).size(), 64U);
}

TEST_F(HeatFile, AllMapsOfADirectoryGo) {
  (void)write("1.heat", "x");
  (void)write("2.heat.new", "x");
  const std::string other = write("profile.json", "x");
  const auto removed = remove_heat_files(directory_);
  ASSERT_TRUE(removed.is_ok()) << removed.status().message();
  EXPECT_EQ(*removed, 2U);
  EXPECT_EQ(::access(other.c_str(), F_OK), 0);
  EXPECT_EQ(*remove_heat_files(directory_ + "/none"), 0U);
  ASSERT_EQ(::mkdir((directory_ + "/3.heat").c_str(), 0700), 0);
  EXPECT_FALSE(remove_heat_files(directory_).is_ok()) << "a directory of that name stays";
  ::rmdir((directory_ + "/3.heat").c_str());
}

}  // namespace
}  // namespace cairn
