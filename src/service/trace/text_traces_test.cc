// SPDX-License-Identifier: Apache-2.0
// The traces of other tools, and how a file is known for what it is.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "service/trace/compression.h"
#include "service/trace/open_trace.h"
#include "service/trace/testing/memory_file.h"
#include "service/trace/trace_writer.h"

namespace cairn {
namespace {

const std::string kSampleCsv =
    "t,rank,file,op,off,len\n"
    "0.5,41,7,0,4096,1048576\n"
    "\n"
    "1.000001,3,7,1,0,0\n"
    "2e-05,41,8,0,0,5000000000\r\n";

const std::string kSampleDxt =
    "# darshan log version: 3.21\n"
    "# exe: ./ior\n"
    "\n"
    "# ***************************************************\n"
    "# DXT_POSIX module data\n"
    "# ***************************************************\n"
    "\n"
    "# DXT, file_id: 16457598720760448348, file_name: /tmp/test/a, b\n"
    "# DXT, rank: 0, hostname: shane-thinkpad\n"
    "# DXT, write_count: 2, read_count: 1\n"
    "# DXT, mnt_pt: /, fs_type: ext4\n"
    "# Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)\n"
    " X_POSIX       0  write        0               0          262144      0.0029      0.0032\n"
    " X_POSIX       0  write        1          262144          262144      0.0032      0.0035\n"
    " X_POSIX       0   read        0               0          262144      0.0048      0.0048\n"
    "\n"
    "# DXT, file_id: 16457598720760448348, file_name: /tmp/test/a, b\n"
    "# DXT, rank: 1, hostname: other\n"
    "# DXT, write_count: 1, read_count: 0\n"
    "# DXT, mnt_pt: /scratch, fs_type: lustre\n"
    "# DXT, Lustre stripe_size: 1048576, Lustre stripe_count: 2\n"
    "# DXT, Lustre OST obdidx: 3 4\n"
    "# Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)  [OST]\n"
    " X_POSIX       1  write        0         1048576         1048577      0.0030      0.0031"
    "  [  3]  [  4]\n"
    "\n"
    "# DXT, file_id: 16457598720760448348, file_name: /tmp/test/a, b\n"
    "# DXT, rank: 0, hostname: shane-thinkpad\n"
    "# DXT, write_count: 1, read_count: 0\n"
    "# DXT, mnt_pt: /, fs_type: ext4\n"
    "# Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)\n"
    " X_MPIIO       0  write        0               0          524288      0.0029      0.0035\n";

// One frame of zstd. Requires: a text that becomes smaller.
std::string compressed(const std::string& text) {
  TraceBytes bytes;
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(text.data());
  EXPECT_TRUE(BlockCompressor(3).compress({begin, text.size()}, &bytes));
  return std::string(bytes.begin(), bytes.end());
}

std::vector<TraceEvent> events_of(const std::string& content) {
  MemoryFile file(content);
  auto source = open_trace(file.path());
  if (!source) {
    ADD_FAILURE() << source.status().message();
    return {};
  }
  auto events = all_events(source->get());
  EXPECT_TRUE((*source)->status()) << (*source)->status().message();
  return events;
}

// The message about it, when it is opened or when it is read.
std::string problem_of(const std::string& content) {
  MemoryFile file(content);
  auto source = open_trace(file.path());
  if (!source) return source.status().message();
  (void)all_events(source->get());
  return (*source)->status().message();
}

void expect_problem(const std::string& content, const std::string& part) {
  const std::string problem = problem_of(content);
  EXPECT_NE(problem.find(part), std::string::npos) << problem;
}

TEST(CsvTrace, LinesBecomeEvents) {
  MemoryFile file(kSampleCsv);
  auto source = open_trace(file.path());
  ASSERT_TRUE(source) << source.status().message();
  const std::vector<TraceEvent> expected = {
      {500'000'000, 4096, 1'048'576, 0, 0, 0, TraceKind::kReadMiss},
      {1'000'001'000, 0, 0, 0, 1, 0, TraceKind::kWrite},
      // What no call can read at once was several.
      {20'000, 0, 0x7ffff000, 1, 0, 0, TraceKind::kReadMiss},
      {20'000, 0x7ffff000, 0x7ffff000, 1, 0, 0, TraceKind::kReadMiss},
      {20'000, 2 * std::uint64_t{0x7ffff000}, 5'000'000'000U - 2 * std::uint64_t{0x7ffff000}, 1, 0,
       0, TraceKind::kReadMiss},
  };
  EXPECT_EQ(all_events(source->get()), expected);
  EXPECT_TRUE((*source)->status());
  EXPECT_EQ((*source)->names().files.name(1), "file 8");
  EXPECT_EQ((*source)->names().processes.name(0), "rank 41");
  EXPECT_EQ((*source)->names().processes.name(1), "rank 3");
}

TEST(CsvTrace, AWrongLineIsNamed) {
  const std::string heading = "t,rank,file,op,off,len\n";
  for (const char* line : {"1,2,3", "1,2,3,0,5,6,7", "1,2,3,2,5,6", "-1,2,3,0,5,6", "nan,2,3,0,5,6",
                           "1,2,3,0,-5,6", "1,2,3,0,5,six", "1,2,3,0,9223372036854775807,1",
                           "1,,3,0,5,6", "1e300,2,3,0,5,6", "1,2,3,0,5, 6"}) {
    expect_problem(heading + "1,2,3,0,5,6\n" + line + "\n", ":3: this is not a line of t,rank");
  }
  expect_problem(heading + std::string(70'000, '1') + "\n", ":2: the line is too long");
  expect_problem("t,rank,file,op,off,length\n", ":1: the heading is not t,rank,file,op,off,len");
}

TEST(CsvTrace, ItMayBeCompressedInSeveralFrames) {
  std::string text = "t,rank,file,op,off,len\n";
  std::size_t lines = 0;
  for (; text.size() < 600'000; ++lines) text += std::to_string(lines) + ",1,2,0,4096,4096\n";
  const auto plain = events_of(text);
  EXPECT_EQ(plain.size(), lines);
  EXPECT_EQ(events_of(compressed(text)), plain);
  const std::size_t middle = text.find('\n', 300'000) - 5;
  EXPECT_EQ(events_of(compressed(text.substr(0, middle)) + compressed(text.substr(middle))), plain);
}

TEST(CsvTrace, CompressedAndCutOffItIsAnError) {
  std::string text = "t,rank,file,op,off,len\n";
  for (int line = 0; line < 100; ++line) text += "1,1,2,0,4096,4096\n";
  const std::string whole = compressed(text);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_NE(problem_of(whole.substr(0, bytes)), "") << bytes;
  }
  EXPECT_EQ(problem_of(whole), "");
  expect_problem(whole + "no frame begins like this", "the compressed data is damaged");
}

TEST(DxtTrace, TheAccessesOfPosixComeInTheOrderOfTime) {
  MemoryFile file(kSampleDxt);
  auto source = open_trace(file.path());
  ASSERT_TRUE(source) << source.status().message();
  const std::vector<TraceEvent> expected = {
      {2'900'000, 0, 262'144, 0, 0, 0, TraceKind::kWrite},
      {3'000'000, 1'048'576, 1'048'577, 0, 1, 0, TraceKind::kWrite},
      {3'200'000, 262'144, 262'144, 0, 0, 0, TraceKind::kWrite},
      {4'800'000, 0, 262'144, 0, 0, 0, TraceKind::kReadMiss},
  };
  EXPECT_EQ(all_events(source->get()), expected);
  EXPECT_TRUE((*source)->status());
  EXPECT_NE((*source)->warning().find("1 accesses of other modules"), std::string::npos);
  EXPECT_EQ((*source)->names().files.count(), 1U);
  EXPECT_EQ((*source)->names().files.name(0), "/tmp/test/a, b");
  EXPECT_EQ((*source)->names().processes.name(0), "rank 0 on shane-thinkpad");
  EXPECT_EQ((*source)->names().processes.name(1), "rank 1 on other");
}

TEST(DxtTrace, AWrongLineIsNamed) {
  const std::string heading =
      "# DXT, file_id: 1, file_name: /a\n"
      "# DXT, rank: 0, hostname: h\n";
  const std::string access = " X_POSIX 0 read 0 0 10 0.1 0.2\n";
  EXPECT_EQ(problem_of(heading + access), "");
  expect_problem(heading + " X_POSIX 0 read 0 0 10 0.1\n", ":3: ");
  expect_problem(heading + " X_POSIX 1 read 0 0 10 0.1 0.2\n", ":3: the rank is not that");
  expect_problem(heading + " X_POSIX 0 seek 0 0 10 0.1 0.2\n", ":3: the access is not");
  expect_problem(heading + " X_POSIX 0 read 0 -1 10 0.1 0.2\n", ":3: the access is not");
  expect_problem(heading + " X_POSIX 0 read 0 9223372036854775807 1 0.1 0.2\n", ":3: no file");
  expect_problem(heading + " Y_POSIX 0 read 0 0 10 0.1 0.2\n", ":3: this is not a line of DXT");
  expect_problem("# DXT, rank: x, hostname: h\n", ":1: the rank is not a number");
  expect_problem("# DXT, file_id: 1, file_name: /a\n" + access, ":2: there is no heading");
}

TEST(OpenTrace, KnowsEachKindByItsBeginning) {
  MemoryFile file;
  auto writer = TraceWriter::create(file.path());
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->finish());
  EXPECT_TRUE(open_trace(file.path()));
  EXPECT_EQ(events_of(compressed(kSampleDxt)), events_of(kSampleDxt));
  for (const std::string& content : {std::string(), std::string("\x89"), std::string("PNG"),
                                     std::string("# a comment\n"), std::string(100'000, '\0')}) {
    expect_problem(content, "is no trace");
  }
  EXPECT_EQ(open_trace("/does/not/exist").status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(open_trace("/"));
}

// A few wounds each: bytes changed, left out or repeated.
std::string wounded(std::string text, std::mt19937_64* random) {
  for (std::size_t wounds = (*random)() % 5 + 1; wounds > 0 && !text.empty(); --wounds) {
    const std::size_t at = (*random)() % text.size();
    const std::size_t length = (*random)() % 20 + 1;
    switch ((*random)() % 4) {
      case 0:
        text[at] = static_cast<char>((*random)());
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr((*random)() % text.size(), length));
        break;
      default:
        text[at] = "0123456789,.-e \n#X\r"[(*random)() % 19];
        break;
    }
  }
  return text;
}

TEST(OpenTrace, DamageIsAProblemOrATraceAndNeverMore) {
  std::mt19937_64 random(printed_seed());
  MemoryFile whole;
  auto writer = TraceWriter::create(whole.path(), {.events_per_block = 50});
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->file("/a"));
  ASSERT_TRUE((*writer)->process("p"));
  for (const TraceEvent& event : random_events(&random, 200, 1, 1)) {
    ASSERT_TRUE((*writer)->append(event));
  }
  ASSERT_TRUE((*writer)->finish());
  const std::string samples[] = {whole.content(), kSampleCsv, kSampleDxt, compressed(kSampleDxt)};
  MemoryFile file;
  unsigned opened = 0;
  for (int round = 0; round < 5000; ++round) {
    file.set_content(wounded(samples[random() % 4], &random));
    auto source = open_trace(file.path());
    if (!source) {
      ASSERT_NE(source.status().message(), "");
      continue;
    }
    ++opened;
    for (const TraceEvent& event : all_events(source->get())) {
      ASSERT_LT(event.file, (*source)->names().files.count());
      ASSERT_LT(event.process, (*source)->names().processes.count());
    }
  }
  EXPECT_GT(opened, 250U) << "else nothing but the beginnings was tested";
}

}  // namespace
}  // namespace cairn
