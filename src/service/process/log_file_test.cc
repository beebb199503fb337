// SPDX-License-Identifier: Apache-2.0
#include "service/process/log_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/testing/temporary_folder.h"
#include "service/process/log.h"

namespace cairn::node {
namespace {

TEST(LogFile, KeepsTheNewestLinesAndSaysHowManyWereLeftOut) {
  constexpr int kLines = 40;
  constexpr std::size_t kLineBytes = std::size_t{256} << 10;
  const cairn::testing::TemporaryFolder folder("cairn-log");
  const std::string path = folder.path() + "/node.log";
  open_log(path);
  for (int line = 0; line < kLines; ++line) log::info("{} {}", line, std::string(kLineBytes, 'x'));
  log::info("the last");
  EXPECT_LE(std::filesystem::file_size(path), kLogBytesMax);
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  const auto left_out = text.find(" older lines were left out");
  ASSERT_NE(left_out, std::string::npos) << text.substr(0, 100);
  int lines = std::stoi(text.substr(sizeof "cairn:", left_out));
  std::string last;
  for (; std::getline(file, text); ++lines) last = text;
  EXPECT_NE(last.find("the last"), std::string::npos) << last.substr(0, 100);
  EXPECT_GE(lines, kLines);
  EXPECT_LE(lines, kLines + 3) << "a note that goes is counted as a line";
}

}  // namespace
}  // namespace cairn::node
