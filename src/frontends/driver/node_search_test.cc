// SPDX-License-Identifier: Apache-2.0
#include "frontends/driver/node_search.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace cairn::driver {
namespace {

class NodeSearch : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"CAIRN_SOCKET", "CAIRN_NODE_NAME", "CAIRN_BYPASS", "XDG_RUNTIME_DIR"})
      unsetenv(name);
    char pattern[] = "/tmp/cairn-search-XXXXXX";
    root_ = mkdtemp(pattern);
    setenv("CAIRN_RUN_ROOT", root_.c_str(), 1);
  }
  void TearDown() override {
    for (const int fd : open_) close(fd);
    std::filesystem::remove_all(root_);
    unsetenv("CAIRN_RUN_ROOT");
    unsetenv("CAIRN_NODE_NAME");
    unsetenv("CAIRN_SOCKET");
    unsetenv("CAIRN_BYPASS");
  }

  std::string directory(const std::string& name) {
    const std::string path = root_ + "/" + name;
    EXPECT_EQ(mkdir(path.c_str(), 0700), 0);
    return path;
  }
  // A node whose service answers.
  std::string make_answering(const std::string& name) {
    const std::string path = directory(name);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (path + "/control.sock").c_str());
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd, 8), 0);
    open_.push_back(fd);
    return path;
  }
  // A node whose service is being started anew: its keeper has the lock.
  std::string make_kept(const std::string& name) {
    const std::string path = directory(name);
    const int fd = open((path + "/node.pid").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(flock(fd, LOCK_EX | LOCK_NB), 0);
    open_.push_back(fd);
    return path;
  }
  // What a node leaves behind that was killed with its keeper.
  void make_dead(const std::string& name) {
    make_answering(name);
    close(open_.back());
    open_.pop_back();
    make_kept(name + "-2");
    close(open_.back());
    open_.pop_back();
  }
  // The socket that is found, or nothing.
  std::string found() {
    NodeSocket socket{};
    return find_node(socket) ? socket.path : "";
  }

  std::string root_;
  std::vector<int> open_;
};

TEST_F(NodeSearch, FindsTheOnlyNode) {
  EXPECT_EQ(found(), "");
  const std::string path = make_answering("job");
  EXPECT_EQ(found(), path + "/client.sock");
}

TEST_F(NodeSearch, ChoosesNoneOfSeveral) {
  const std::string path = make_answering("a");
  make_kept("b");
  EXPECT_EQ(found(), "");
  setenv("CAIRN_NODE_NAME", "a", 1);
  EXPECT_EQ(found(), path + "/client.sock");
}

TEST_F(NodeSearch, WaitsForANodeThatIsStartedAnew) {
  const std::string path = make_kept("job");
  EXPECT_EQ(found(), path + "/client.sock");
}

// The program would wait for good, also where it asks only whether there is another node.
TEST_F(NodeSearch, WaitsForNoServiceThatHasStopped) {
  const std::string path = make_answering("job");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (path + "/control.sock").c_str());
  // As many as wait to be taken up.
  for (bool has_room = true; has_room;) {
    open_.push_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    has_room = connect(open_.back(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  alarm(20);
  EXPECT_EQ(found(), path + "/client.sock");
  alarm(0);
}

TEST_F(NodeSearch, KnowsTheDead) {
  make_dead("job");
  EXPECT_EQ(found(), "");
  setenv("CAIRN_NODE_NAME", "job", 1);
  EXPECT_EQ(found(), "");
}

TEST_F(NodeSearch, LeavesTheNodesOfRunsAlone) {
  const std::string path = make_answering("run-123");
  EXPECT_EQ(found(), "");
  setenv("CAIRN_NODE_NAME", path.c_str(), 1);
  EXPECT_EQ(found(), path + "/client.sock");
}

TEST_F(NodeSearch, TrustsNoDirectoryThatOthersMayWrite) {
  const std::string path = make_answering("job");
  ASSERT_EQ(chmod(path.c_str(), 0770), 0);
  EXPECT_EQ(found(), "");
  ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  ASSERT_EQ(chmod(root_.c_str(), 0777), 0);
  EXPECT_EQ(found(), "");
}

TEST_F(NodeSearch, ObeysTheSocketOfARun) {
  make_answering("job");
  setenv("CAIRN_SOCKET", "/run/other/client.sock", 1);
  EXPECT_EQ(found(), "/run/other/client.sock");
  setenv("CAIRN_BYPASS", "1", 1);
  EXPECT_EQ(found(), "");
  unsetenv("CAIRN_BYPASS");
  setenv("CAIRN_SOCKET", std::string(200, 'x').c_str(), 1);
  EXPECT_EQ(found(), "");
}

}  // namespace
}  // namespace cairn::driver
