// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>

#include "base/testing/temporary_folder.h"
#include "service/durable_log/durable_log.h"
#include "service/replay/log_index.h"
#include "service/replay/recovery.h"

namespace cairn::durable {
namespace {

// Logs three writes to the file as a node that dies before it has made any of them durable.
void log_and_die(const std::string& tier, const std::string& path) {
  auto log = DurableLog::open(tier, {.capacity_bytes = 0, .segment_bytes = 1U << 20});
  struct statx found{};
  if (!log || ::statx(AT_FDCWD, path.c_str(), 0, STATX_BASIC_STATS | STATX_BTIME, &found) != 0)
    ::_exit(1);
  const std::int64_t born = found.stx_btime.tv_sec * kSecondNs + found.stx_btime.tv_nsec;
  const std::int64_t changed = found.stx_mtime.tv_sec * kSecondNs + found.stx_mtime.tv_nsec;
  FileIdentity identity;
  identity.key = file_key(1, found.stx_ino, born);
  identity.path = path;
  const auto object = (*log)->add_object(identity, {found.stx_size, changed});
  for (const auto& [offset, text] : {std::pair{0U, "first"}, {5U, "other"}, {0U, "third"}}) {
    const auto bytes = std::as_bytes(std::span(text, 5));
    if (!object || !(*log)->append_data(*object, {offset, bytes}, {10, 5})) ::_exit(1);
  }
  ::_exit(0);
}

// Nobody was told that it is durable. The recovery says so, and the next one does not again.
TEST(TornEnd, IsReportedByTheRecoveryThatSkipsIt) {
  const testing::TemporaryFolder folder("torn_end");
  const std::string tier = folder.path() + "/tier";
  const std::string path = folder.path() + "/a";
  std::filesystem::create_directory(tier);
  std::ofstream(path) << "0123456789";
  const pid_t child = ::fork();
  if (child == 0) log_and_die(tier, path);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  std::fstream segment(tier + "/cairn-durable/log.1",
                       std::ios::in | std::ios::out | std::ios::binary);
  std::ostringstream content;
  content << segment.rdbuf();
  const std::size_t at = content.str().find("other");
  ASSERT_NE(at, std::string::npos);
  segment.seekp(static_cast<std::streamoff>(at));
  segment << "OTHER";
  segment.close();
  const auto report = recover(tier, {});
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  EXPECT_TRUE(report->scan.is_torn);
  EXPECT_EQ(report->scan.torn, 1U);
  std::string text(10, ' ');
  std::ifstream(path).read(text.data(), 10);
  EXPECT_EQ(text, "first56789");
  const auto again = recover(tier, {});
  ASSERT_TRUE(again.is_ok());
  EXPECT_FALSE(again->scan.is_torn);
}

}  // namespace
}  // namespace cairn::durable
