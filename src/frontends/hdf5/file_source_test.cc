// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/file_source.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace cairn::hdf5 {
namespace {

class FileLookTest : public testing::Test {
 protected:
  FileLookTest() : fd_(::mkstemp(path_.data())) {
    EXPECT_GE(fd_, 0);
    EXPECT_EQ(::write(fd_, "bytes", 5), 5);
  }
  ~FileLookTest() override {
    ::close(fd_);
    ::unlink(path_.c_str());
  }
  // However slow the machine is, the file's last change stays "just now".
  void change_later() const {
    const timespec ahead{::time(nullptr) + 3600, 1};
    const timespec times[2] = {ahead, ahead};
    ASSERT_EQ(::futimens(fd_, times), 0);
  }

  std::string path_ = "/var/tmp/cairn-file-look-XXXXXX";
  int fd_;
};

// HDF5 reads while it opens a file. What it has read may be older than a change of the same times.
TEST_F(FileLookTest, AFileThatWasFreshBeforeAnOpenIsFreshHoweverLongThatTakes) {
  change_later();
  const FileLook look = FileLook::by_name(path_.c_str());
  CairnFileVersion opened = look.version;
  opened.is_fresh = 0;  // as told an hour later
  ASSERT_TRUE(look.is_of(&opened));
  EXPECT_EQ(opened.is_fresh, 1u);
}

TEST_F(FileLookTest, AFileThatHadSettledBeforeAnOpenHas) {
  const timespec longer_than_a_tick{0, 100'000'000};
  ::nanosleep(&longer_than_a_tick, nullptr);
  const FileLook look = FileLook::by_name(path_.c_str());
  EXPECT_EQ(look.version.size, 5u);
  CairnFileVersion opened = look.version;
  ASSERT_TRUE(look.is_of(&opened));
  EXPECT_EQ(opened.is_fresh, 0u);
}

TEST_F(FileLookTest, AnotherVersionIsNotTheOneThatItSaw) {
  const FileLook look = FileLook::by_name(path_.c_str());
  for (const auto& change : {+[](CairnFileVersion* version) { version->size++; },
                             +[](CairnFileVersion* version) { version->mtime_ns++; },
                             +[](CairnFileVersion* version) { version->ctime_ns++; }}) {
    CairnFileVersion opened = look.version;
    change(&opened);
    EXPECT_FALSE(look.is_of(&opened));
  }
}

}  // namespace
}  // namespace cairn::hdf5
