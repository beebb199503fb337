// SPDX-License-Identifier: Apache-2.0
#include "frontends/processes/exec_table_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

namespace cairn {
namespace {

TEST(ExecTableFile, CarriesATextOfAnyLength) {
  const std::string text(300'000, '7');
  char reference[kExecTableReferenceBytes];
  const int fd = write_exec_table_file(text.c_str(), text.size(), reference);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(reference, "@" + std::to_string(fd));
  {
    const ExecTableText read(reference);
    ASSERT_NE(read.text(), nullptr);
    EXPECT_EQ(read.text(), text);
    EXPECT_TRUE(read.is_long());
  }
  EXPECT_EQ(fcntl(fd, F_GETFD), -1) << "the reader closes it";
}

TEST(ExecTableFile, AShortTextIsTheValueItself) {
  const ExecTableText read("1,2,3;");
  EXPECT_STREQ(read.text(), "1,2,3;");
  EXPECT_FALSE(read.is_long());
  EXPECT_EQ(ExecTableText(nullptr).text(), nullptr);
}

TEST(ExecTableFile, WhatIsNoTableIsLeftAlone) {
  const int other = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(write(other, "1,2,3;", 7), 7);
  for (const std::string& value :
       {"@" + std::to_string(other), std::string("@"), std::string("@-1"), std::string("@99999999"),
        std::string("@1x")}) {
    EXPECT_EQ(ExecTableText(value.c_str()).text(), nullptr) << value;
  }
  EXPECT_NE(fcntl(other, F_GETFD), -1) << "a file of somebody else is not closed";
  close(other);
}

}  // namespace
}  // namespace cairn
