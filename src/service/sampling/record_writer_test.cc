// SPDX-License-Identifier: Apache-2.0
#include "service/sampling/record_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/testing/temporary_folder.h"
#include "base/testing/without_threads.h"

namespace cairn::node {
namespace {

class RecordWriting : public ::testing::Test {
 protected:
  void TearDown() override {
    if (reader_ >= 0) ::close(reader_);
  }

  std::string path(const char* name) const { return folder_.path() + "/" + name; }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // As a file system that does not answer: nobody reads the pipe that a new record is opened as.
  void hang(const std::string& path) const {
    ASSERT_EQ(::mkfifo((path + ".new").c_str(), 0600), 0);
  }
  // The pipe has its reader from here on, whether its writer has come or not.
  void go_on(const std::string& path) {
    reader_ = ::open((path + ".new").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ASSERT_GE(reader_, 0);
  }

  const cairn::testing::TemporaryFolder folder_{"cairn-records"};
  int reader_ = -1;
};

TEST_F(RecordWriting, TheNewestTextIsInTheFile) {
  RecordWriter writer;
  writer.put(path("a"), "one");
  writer.put(path("b"), "other");
  writer.put(path("a"), "two");
  writer.stop();
  EXPECT_EQ(text_of(path("a")), "two");
  EXPECT_EQ(text_of(path("b")), "other");
}

TEST_F(RecordWriting, WithoutAThreadNothingIsWrittenAndTheCallReturns) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another account";
  const int status = cairn::testing::run_without_threads([this] {
    RecordWriter writer;
    writer.put(path("a"), "one");
    return 7;
  });
  EXPECT_EQ(status, 7);
}

TEST_F(RecordWriting, APlaceThatHangsHoldsUpNobody) {
  RecordWriter writer;
  hang(path("a"));
  const auto began = std::chrono::steady_clock::now();
  writer.put(path("a"), "one");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it is at the pipe
  writer.put(path("a"), "two");
  writer.leave(path("a"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  go_on(path("a"));
  writer.stop();
}

TEST_F(RecordWriting, AfterLeaveTheFileIsTheLaunchers) {
  RecordWriter writer;
  hang(path("a"));
  writer.put(path("a"), "sampled");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it is at the pipe
  writer.leave(path("a"));
  std::ofstream(path("a")) << "whole";
  go_on(path("a"));
  writer.stop();
  EXPECT_EQ(text_of(path("a")), "whole");
  EXPECT_FALSE(std::filesystem::exists(path("a.new")));
}

}  // namespace
}  // namespace cairn::node
