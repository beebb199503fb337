// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/elf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "cli/launch/program_check.h"

namespace cairn::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string bytes_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

ElfFile parse(const std::string& bytes) {
  return parse_elf(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

TEST(ElfFile, ReadsThisVeryProgram) {
  const ElfFile file = read_elf_file("/proc/self/exe");
  EXPECT_EQ(file.kind, FileKind::kElf);
  EXPECT_TRUE(file.same_class);
  EXPECT_THAT(file.interpreter, HasSubstr("ld-"));
  EXPECT_THAT(file.needed, Contains("libc.so.6"));
  EXPECT_FALSE(file.imported.empty());
  EXPECT_TRUE(std::is_sorted(file.imported.begin(), file.imported.end()));
  EXPECT_FALSE(file.has_go_build_info);
  EXPECT_FALSE(file.is_damaged);
}

TEST(ElfFile, RecognisesScripts) {
  const ElfFile script = parse("#! /usr/bin/env  python3 -u\nprint()\n");
  EXPECT_EQ(script.kind, FileKind::kScript);
  EXPECT_EQ(script.script_interpreter, "/usr/bin/env");
  EXPECT_EQ(script.script_argument, "python3 -u");
  EXPECT_EQ(parse("#!").kind, FileKind::kScript);
}

TEST(ElfFile, OtherFilesAreUnknown) {
  EXPECT_EQ(parse("").kind, FileKind::kUnknown);
  EXPECT_EQ(parse("hello").kind, FileKind::kUnknown);
  EXPECT_EQ(parse("\x7f"
                  "EL")
                .kind,
            FileKind::kUnknown);
  EXPECT_EQ(read_elf_file("/no/such/file").kind, FileKind::kMissing);
  EXPECT_EQ(read_elf_file("/").kind, FileKind::kUnknown);
}

TEST(ElfFile, ADamagedFileNeverCrashesTheReader) {
  const std::string good = bytes_of("/bin/true");
  ASSERT_FALSE(good.empty());
  for (size_t size = 0; size < good.size(); size += 1 + size / 7) parse(good.substr(0, size));
  std::minstd_rand random(4711);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = good;
    for (int change = 0; change < 20; ++change) {
      // The head holds the tables' offsets; most damage goes there.
      const size_t range =
          change % 2 == 0 ? std::min<size_t>(1024, damaged.size()) : damaged.size();
      damaged[random() % range] = static_cast<char>(random());
    }
    parse(damaged);
  }
}

TEST(ProgramCheck, AnOrdinaryProgramCanBeBuffered) {
  const ProgramCheck check = check_program("/bin/cat", {});
  EXPECT_TRUE(check.can_be_buffered) << check.reason;
  EXPECT_THAT(check.reason, IsEmpty());
}

TEST(ProgramCheck, UncoveredSymbolsAreThoseThatTouchData) {
  EXPECT_THAT(uncovered_symbols({"malloc", "mkdir", "open", "read"}, {"open"}),
              ::testing::ElementsAre("read"));
  EXPECT_THAT(data_symbols(), Not(Contains("mkdir")));
}

TEST(ProgramCheck, ANonProgramSaysWhy) {
  EXPECT_THAT(check_loading("/etc/passwd").reason, HasSubstr("no ELF program"));
}

}  // namespace
}  // namespace cairn::cli
