// SPDX-License-Identifier: Apache-2.0
#include "frontends/processes/elf_probe.h"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>

namespace cairn {
namespace {

class ElfProbeTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/cairn_probe_XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    folder_ = path;
  }
  void TearDown() override { (void)!std::system(("rm -rf " + folder_).c_str()); }

  std::string write(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    ::chmod(path.c_str(), 0755);
    return path;
  }
  static ForeignReason probe(const std::string& path) {
    return probe_program(AT_FDCWD, path.c_str(), 0, nullptr).foreign;
  }
  // An executable with the given segments' contents behind the headers.
  static std::string make_elf(const std::vector<std::pair<std::uint32_t, std::string>>& segments) {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
#if defined(__x86_64__)
    header.e_machine = EM_X86_64;
#else
    header.e_machine = EM_AARCH64;
#endif
    header.e_phoff = sizeof header;
    header.e_phnum = static_cast<Elf64_Half>(segments.size());
    std::string heads;
    std::string bodies;
    const std::size_t bodies_begin = sizeof header + segments.size() * sizeof(Elf64_Phdr);
    for (const auto& [type, body] : segments) {
      Elf64_Phdr segment{};
      segment.p_type = type;
      segment.p_offset = bodies_begin + bodies.size();
      segment.p_filesz = body.size();
      heads.append(reinterpret_cast<const char*>(&segment), sizeof segment);
      bodies += body;
    }
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) + heads + bodies;
  }
  static std::string note(const std::string& name, std::uint32_t type, const std::string& body) {
    const Elf64_Nhdr head{static_cast<Elf64_Word>(name.size() + 1),
                          static_cast<Elf64_Word>(body.size()), type};
    std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
    bytes.append(name.c_str(), name.size() + 1);
    bytes.resize((bytes.size() + 3) & ~std::size_t{3});
    bytes += body;
    bytes.resize((bytes.size() + 3) & ~std::size_t{3});
    return bytes;
  }

  std::string folder_;
};

const std::string kLoader = std::string("/lib64/ld-linux-x86-64.so.2") + '\0';

TEST_F(ElfProbeTest, DynamicProgramsAreInterceptable) {
  EXPECT_EQ(probe("/bin/true"), ForeignReason::kNone);
  EXPECT_EQ(probe("/proc/self/exe"), ForeignReason::kNone);
  EXPECT_EQ(probe(write("dynamic", make_elf({{PT_INTERP, kLoader}}))), ForeignReason::kNone);
}

TEST_F(ElfProbeTest, TheLoaderAsAProgramIsInterceptable) {
  const char* loader = "/lib64/ld-linux-x86-64.so.2";
  if (::access(loader, R_OK) != 0) GTEST_SKIP() << "no such loader here";
  EXPECT_EQ(probe(loader), ForeignReason::kNone);
}

TEST_F(ElfProbeTest, StaticProgramsAreForeign) {
  EXPECT_EQ(probe(write("static", make_elf({{PT_LOAD, "x"}}))), ForeignReason::kStatic);
  const std::string source = write("one.c", "int main(void){return 0;}");
  const std::string program = folder_ + "/one";
  if (std::system(("gcc -static -o " + program + " " + source + " 2>/dev/null").c_str()) != 0)
    GTEST_SKIP();
  EXPECT_EQ(probe(program), ForeignReason::kStatic);
  ASSERT_EQ(std::system(("gcc -static-pie -o " + program + " " + source + " 2>/dev/null").c_str()),
            0);
  EXPECT_EQ(probe(program), ForeignReason::kStatic);
}

TEST_F(ElfProbeTest, GoProgramsAreForeignHoweverTheyAreLinked) {
  const std::string notes = note("GNU", 3, "0123456789abcdef") + note("Go", 4, "build id");
  EXPECT_EQ(probe(write("go", make_elf({{PT_NOTE, notes}}))), ForeignReason::kGo);
  EXPECT_EQ(probe(write("cgo", make_elf({{PT_INTERP, kLoader}, {PT_NOTE, notes}}))),
            ForeignReason::kGo);
  EXPECT_EQ(probe(write("c", make_elf({{PT_INTERP, kLoader}, {PT_NOTE, note("GNU", 4, "x")}}))),
            ForeignReason::kNone);
}

TEST_F(ElfProbeTest, OtherLoadersAndMachinesAreForeign) {
  const std::string musl = std::string("/lib/ld-musl-x86_64.so.1") + '\0';
  EXPECT_EQ(probe(write("musl", make_elf({{PT_INTERP, musl}}))), ForeignReason::kOtherLibc);
  std::string other = make_elf({{PT_INTERP, kLoader}});
  other[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(probe(write("narrow", other)), ForeignReason::kOtherArchitecture);
}

TEST_F(ElfProbeTest, AScriptIsAsItsInterpreter) {
  const std::string program = write("static", make_elf({{PT_LOAD, "x"}}));
  const std::string script = write("script", "#! " + program + " -x\n");
  const std::string outer = write("outer", "#!" + script);
  EXPECT_EQ(probe(script), ForeignReason::kStatic);
  EXPECT_EQ(probe(outer), ForeignReason::kStatic);
  EXPECT_TRUE(probe_program(AT_FDCWD, outer.c_str(), 0, nullptr).is_script);
  EXPECT_EQ(probe(write("shell", "#!/bin/sh\nexit 0\n")), ForeignReason::kNone);
  const std::string loop = folder_ + "/loop";
  EXPECT_EQ(probe(write("loop", "#!" + loop + "\n")), ForeignReason::kNone)
      << "the kernel refuses it";
}

TEST_F(ElfProbeTest, WhatCannotBeReadIsLeftToTheKernel) {
  EXPECT_EQ(probe(folder_ + "/nothing"), ForeignReason::kNone);
  EXPECT_EQ(probe(folder_), ForeignReason::kNone);
  EXPECT_EQ(probe(write("empty", "")), ForeignReason::kNone);
  EXPECT_EQ(probe(write("text", "echo no hash bang\n")), ForeignReason::kNone);
}

TEST_F(ElfProbeTest, ADescriptorCanBeProbed) {
  const int fd = ::open("/bin/true", O_RDONLY);
  EXPECT_EQ(probe_program(fd, "", AT_EMPTY_PATH, nullptr).foreign, ForeignReason::kNone);
  EXPECT_EQ(::close(fd), 0);
}

TEST_F(ElfProbeTest, DamagedFilesAreSurvived) {
  std::mt19937 random(7);
  const std::string whole = make_elf({{PT_NOTE, note("GNU", 3, "abc")}, {PT_INTERP, kLoader}});
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = whole.substr(0, random() % (whole.size() + 1));
    for (unsigned count = random() % 8; count > 0 && damaged.size() > 20; --count) {
      damaged[18 + random() % (damaged.size() - 18)] = static_cast<char>(random());
    }
    probe(write("damaged", damaged));
  }
}

}  // namespace
}  // namespace cairn
