// SPDX-License-Identifier: Apache-2.0
#include "frontends/libc/stdio_jumps.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <wchar.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "frontends/libc/stream_mode.h"

namespace cairn {
namespace {

// One buffered file in memory behind an O_PATH placeholder, as in the preload.
struct MemoryFile {
  int fd = -1;
  std::string bytes;
  std::size_t offset = 0;
  int closes = 0;
  int reads = 0;
  int fail_with = 0;
};
MemoryFile memory_file;

const StdioCalls kCalls = {
    .is_ours = [](int fd) { return fd == memory_file.fd; },
    .read = [](int, void* buffer, size_t length) -> ssize_t {
      ++memory_file.reads;
      if (memory_file.offset >= memory_file.bytes.size()) return 0;
      const std::size_t part = std::min(length, memory_file.bytes.size() - memory_file.offset);
      std::memcpy(buffer, memory_file.bytes.data() + memory_file.offset, part);
      memory_file.offset += part;
      return static_cast<ssize_t>(part);
    },
    .write = [](int, const void* buffer, size_t length) -> ssize_t {
      if (memory_file.fail_with != 0) {
        errno = memory_file.fail_with;
        return -1;
      }
      if (memory_file.bytes.size() < memory_file.offset + length)
        memory_file.bytes.resize(memory_file.offset + length);
      std::memcpy(memory_file.bytes.data() + memory_file.offset, buffer, length);
      memory_file.offset += length;
      return static_cast<ssize_t>(length);
    },
    .seek = [](int, off_t offset, int whence) -> off_t {
      const auto base = whence == SEEK_SET   ? 0
                        : whence == SEEK_CUR ? memory_file.offset
                                             : memory_file.bytes.size();
      memory_file.offset = base + static_cast<std::size_t>(offset);
      return static_cast<off_t>(memory_file.offset);
    },
    .close =
        [](int fd) {
          ++memory_file.closes;
          memory_file.fd = -1;
          return ::close(fd);
        },
    .stat =
        [](int fd, struct stat* status) {
          const int result = ::fstat(fd, status);
          status->st_size = static_cast<off_t>(memory_file.bytes.size());
          return result;
        },
};

class StdioJumpsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(install_stdio_jumps(kCalls));
    memory_file = MemoryFile();
    char path[] = "/tmp/cairn_stdio_XXXXXX";
    ::close(::mkstemp(path));
    memory_file.fd = ::open(path, O_PATH | O_CLOEXEC);
    ::unlink(path);
    ASSERT_GE(memory_file.fd, 0);
  }
  void TearDown() override {
    if (memory_file.fd >= 0) ::close(memory_file.fd);
    memory_file.fd = -1;
  }
};

TEST_F(StdioJumpsTest, FormattedOutputReachesTheFile) {
  const int fd = memory_file.fd;
  FILE* stream = make_stream(fd, "w");
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(fileno(stream), fd);
  fprintf(stream, "%d-%s", 42, "answer");
  EXPECT_EQ(memory_file.bytes, "") << "not before a flush";
  EXPECT_EQ(fclose(stream), 0);
  EXPECT_EQ(memory_file.bytes, "42-answer");
  EXPECT_EQ(memory_file.closes, 1);
}

TEST_F(StdioJumpsTest, SmallRecordsSurviveARoundTrip) {
  FILE* stream = make_stream(memory_file.fd, "w+");
  char record[100];
  for (int index = 0; index < 5000; ++index) {
    std::memset(record, 'a' + index % 26, sizeof record);
    ASSERT_EQ(fwrite(record, sizeof record, 1, stream), 1U);
  }
  rewind(stream);
  for (int index = 0; index < 5000; ++index) {
    ASSERT_EQ(fread(record, sizeof record, 1, stream), 1U);
    ASSERT_EQ(record[99], 'a' + index % 26);
  }
  EXPECT_EQ(fgetc(stream), EOF);
  EXPECT_TRUE(feof(stream));
  EXPECT_EQ(fseek(stream, 250 * 100, SEEK_SET), 0);
  EXPECT_EQ(fgetc(stream), 'a' + 250 % 26);
  EXPECT_EQ(ftell(stream), 250 * 100 + 1);
  EXPECT_EQ(fseek(stream, -1, SEEK_END), 0);
  EXPECT_EQ(ftell(stream), 5000 * 100 - 1);
  fclose(stream);
}

TEST_F(StdioJumpsTest, WideCharactersWork) {
  FILE* stream = make_stream(memory_file.fd, "w");
  EXPECT_GT(fwide(stream, 1), 0);
  EXPECT_GT(fwprintf(stream, L"%ls %d\n", L"wide", 7), 0);
  fclose(stream);
  EXPECT_EQ(memory_file.bytes, "wide 7\n");
}

TEST_F(StdioJumpsTest, StandardStreamsFollowTheirDescriptor) {
  fflush(stdout);
  const int saved = ::dup(1);
  ::dup2(memory_file.fd, 1);
  ::close(memory_file.fd);
  memory_file.fd = 1;
  printf("to the file\n");
  fflush(stdout);
  memory_file.fd = -1;
  ::dup2(saved, 1);
  ::close(saved);
  EXPECT_EQ(memory_file.bytes, "to the file\n");
}

TEST_F(StdioJumpsTest, DprintfReachesTheFile) {
  dprintf(memory_file.fd, "%s", "direct");
  EXPECT_EQ(memory_file.bytes, "direct");
}

TEST_F(StdioJumpsTest, AnErrorOfTheFileIsTheStreams) {
  FILE* stream = make_stream(memory_file.fd, "w");
  memory_file.fail_with = ENOSPC;
  fputs("lost", stream);
  errno = 0;
  EXPECT_EQ(fflush(stream), EOF);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_TRUE(ferror(stream));
  fclose(stream);
}

TEST_F(StdioJumpsTest, OtherStreamsAreLibcsOwn) {
  FILE* stream = tmpfile();
  ASSERT_NE(stream, nullptr);
  fputs("native", stream);
  rewind(stream);
  char text[16] = {};
  EXPECT_EQ(fread(text, 1, sizeof text, stream), 6U);
  EXPECT_STREQ(text, "native");
  fclose(stream);
  EXPECT_EQ(memory_file.reads, 0);
}

TEST(StreamModeTest, ModesBecomeFlags) {
  EXPECT_EQ(parse_stream_mode("r").flags, O_RDONLY);
  EXPECT_EQ(parse_stream_mode("rb+").flags, O_RDWR);
  EXPECT_EQ(parse_stream_mode("w").flags, O_WRONLY | O_CREAT | O_TRUNC);
  EXPECT_EQ(parse_stream_mode("w+xe").flags, O_RDWR | O_CREAT | O_TRUNC | O_EXCL | O_CLOEXEC);
  EXPECT_EQ(parse_stream_mode("a").flags, O_WRONLY | O_CREAT | O_APPEND);
  EXPECT_TRUE(parse_stream_mode("a").is_append_only);
  EXPECT_FALSE(parse_stream_mode("a+").is_append_only);
  EXPECT_STREQ(parse_stream_mode("wxe,ccs=UTF-8").for_descriptor, "w,ccs=UTF-8");
  EXPECT_FALSE(parse_stream_mode("z").is_valid);
  EXPECT_FALSE(parse_stream_mode("").is_valid);
  EXPECT_EQ(parse_stream_mode("r,ccs=+x").flags, O_RDONLY) << "nothing after the comma counts";
}

}  // namespace
}  // namespace cairn
