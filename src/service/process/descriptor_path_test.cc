// SPDX-License-Identifier: Apache-2.0
#include "service/process/descriptor_path.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/process/unique_fd.h"

namespace cairn::node {
namespace {

struct NamedFile {
  NamedFile() : fd(::mkstemp(path.data())) {
    struct stat status{};
    EXPECT_EQ(::fstat(fd.get(), &status), 0);
    inode = status.st_ino;
  }
  ~NamedFile() { ::unlink(path.c_str()); }
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;

  std::string path = "/var/tmp/cairn-descriptor-path-XXXXXX";
  UniqueFd fd;
  std::uint64_t inode = 0;
};

TEST(DescriptorPath, IsThatOfTheFileThatIsMeant) {
  const NamedFile one;
  const NamedFile other;
  const int number = one.fd.get();
  EXPECT_EQ(path_of_file(::getpid(), number, one.inode), one.path);
  // The program has closed it, and opened the next one.
  ASSERT_EQ(::dup2(other.fd.get(), number), number);
  EXPECT_EQ(path_of_file(::getpid(), number, one.inode), "");
  EXPECT_EQ(path_of_file(::getpid(), number, other.inode), other.path);
  EXPECT_EQ(path_of_file(::getpid(), -1, one.inode), "");
}

}  // namespace
}  // namespace cairn::node
