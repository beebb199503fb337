// SPDX-License-Identifier: Apache-2.0
#include "frontends/processes/launch_environment.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace cairn {
namespace {

class LaunchEnvironmentTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::vector<std::string> texts = {"HOME=/root", "CAIRN_SOCKET=/run/a/client.sock",
                                      "CAIRN_BUFFER=/data", "CAIRN_RUN=12"};
    LaunchEnvironment::remember(pointers(texts).data(), "/opt/lib/libcairn_preload.so");
  }
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
  }
  static std::vector<std::string> build(std::vector<std::string> texts, const char* table = nullptr,
                                        bool without_library = false) {
    const std::vector<char*> input = pointers(texts);
    const std::size_t bytes =
        LaunchEnvironment::build_bytes(input.data()) + (table != nullptr ? strlen(table) : 0);
    // On the heap, so that the sanitizer sees a byte too many.
    const std::unique_ptr<char[]> scratch(new char[bytes]);
    std::vector<std::string> result;
    for (char** entry =
             LaunchEnvironment::build(input.data(), table, without_library, scratch.get());
         *entry != nullptr; ++entry) {
      result.emplace_back(*entry);
    }
    return result;
  }
};

using Texts = std::vector<std::string>;

constexpr const char* kAnyOrder = "ASAN_OPTIONS=verify_asan_link_order=0";

TEST_F(LaunchEnvironmentTest, ACleanedEnvironmentStillCarriesTheRun) {
  EXPECT_EQ(build({}),
            (Texts{"CAIRN_SOCKET=/run/a/client.sock", "CAIRN_BUFFER=/data", "CAIRN_RUN=12",
                   "LD_PRELOAD=/opt/lib/libcairn_preload.so", kAnyOrder}));
}

TEST_F(LaunchEnvironmentTest, OtherPreloadsAreKeptBehindOurs) {
  EXPECT_EQ(build({"LD_PRELOAD=/a.so /opt/lib/libcairn_preload.so:/b.so",
                   "CAIRN_SOCKET=/run/a/client.sock"}),
            (Texts{"CAIRN_SOCKET=/run/a/client.sock",
                   "LD_PRELOAD=/opt/lib/libcairn_preload.so:/a.so:/b.so", kAnyOrder}));
}

TEST_F(LaunchEnvironmentTest, TheTableIsPassedOnAndAnOldOneIsNot) {
  EXPECT_EQ(build({"CAIRN_FDS=old", "CAIRN_SOCKET=/run/a/client.sock"}, "1,2,3;"),
            (Texts{"CAIRN_SOCKET=/run/a/client.sock", "LD_PRELOAD=/opt/lib/libcairn_preload.so",
                   kAnyOrder, "CAIRN_FDS=1,2,3;"}));
}

TEST_F(LaunchEnvironmentTest, AProgramThatCannotLoadTheLibraryIsNotAskedTo) {
  EXPECT_EQ(
      build({"LD_PRELOAD=/opt/lib/libcairn_preload.so:/a.so", "CAIRN_SOCKET=/run/a/client.sock"},
            nullptr, true),
      (Texts{"CAIRN_SOCKET=/run/a/client.sock", "LD_PRELOAD=/a.so"}));
}

TEST_F(LaunchEnvironmentTest, OptionsOfTheSanitizerAreKeptBehindOurs) {
  const auto options_of = [](const std::string& given) {
    for (const std::string& text : build({given, "CAIRN_SOCKET=/run/a/client.sock"}))
      if (text.rfind("ASAN_OPTIONS=", 0) == 0) return text;
    return std::string();
  };
  EXPECT_EQ(options_of("ASAN_OPTIONS=log_path=x"), std::string(kAnyOrder) + ":log_path=x");
  EXPECT_EQ(options_of("ASAN_OPTIONS="), kAnyOrder);
  EXPECT_EQ(options_of(options_of("ASAN_OPTIONS=a=1")), options_of("ASAN_OPTIONS=a=1"))
      << "they do not grow from start to start";
}

TEST_F(LaunchEnvironmentTest, ARunInsideTheRunGoesItsOwnWay) {
  const Texts inner = {"LD_PRELOAD=/other/libcairn_preload.so", "CAIRN_SOCKET=/run/b/client.sock"};
  EXPECT_EQ(build(inner, "1,2,3;"), inner);
  const Texts service = {"CAIRN_BYPASS=1"};
  EXPECT_EQ(build(service, "1,2,3;"), service);
}

TEST_F(LaunchEnvironmentTest, VariablesAreFoundAndRemoved) {
  Texts texts = {"A=1", "AB=2", "CAIRN_FDS=x", "B="};
  std::vector<char*> input = pointers(texts);
  EXPECT_STREQ(find_variable(input.data(), "A"), "1");
  EXPECT_STREQ(find_variable(input.data(), "B"), "");
  EXPECT_EQ(find_variable(input.data(), "C"), nullptr);
  EXPECT_EQ(find_variable(nullptr, "C"), nullptr);
  remove_variable(input.data(), "CAIRN_FDS");
  EXPECT_STREQ(input[2], "B=");
  EXPECT_EQ(input[3], nullptr);
}

}  // namespace
}  // namespace cairn
