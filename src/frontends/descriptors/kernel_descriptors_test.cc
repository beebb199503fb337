// SPDX-License-Identifier: Apache-2.0
// Both ways to list the process's descriptors find the same ones.
#include "frontends/descriptors/kernel_descriptors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace cairn {
namespace {

std::vector<int> listed() {
  std::vector<int> found;
  EXPECT_TRUE(for_each_kernel_descriptor([&](int fd) { found.push_back(fd); }));
  return found;
}

std::vector<int> counted() {
  std::vector<int> found;
  EXPECT_TRUE(for_each_descriptor_of_thread([&](int fd) { found.push_back(fd); }));
  return found;
}

TEST(KernelDescriptors, AreTheSameByCountAndByList) {
  EXPECT_EQ(counted(), listed());
  const int low = ::dup(0);
  EXPECT_EQ(counted(), listed());
  const int high = ::fcntl(0, F_DUPFD, 700);
  EXPECT_EQ(counted(), listed()) << "a number past the lowest is found as well";
  ::close(low);
  EXPECT_EQ(counted(), listed()) << "nor does a gap hide any";
  ::close(high);
}

TEST(KernelDescriptors, MayBeOpenedAndClosedByTheVisit) {
  const int before = ::dup(0);
  std::vector<int> visited;
  for_each_descriptor_of_thread([&](int fd) {
    visited.push_back(fd);
    if (fd == before) ::close(before);
  });
  EXPECT_NE(std::find(visited.begin(), visited.end(), before), visited.end());
  EXPECT_EQ(counted(), listed());
}

}  // namespace
}  // namespace cairn
